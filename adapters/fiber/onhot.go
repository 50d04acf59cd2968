package hpfiber

import (
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v3"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// share answers a request of a hot key together with others, and reports whether it has. If not, it
// returns d or a refusal.
func share(c fiber.Ctx, hp Guard, r *fiberRequest, req middleware.Request, d rules.Decision) (bool, rules.Decision) {
	if req.HTTP = r.made; req.HTTP == nil {
		req.HTTP = r.toHTTP()
	}
	app, header := c.App(), make(http.Header)
	shared := hp.Share(&middleware.Exchange{
		Request: req, HTTP: withTarget(req.HTTP, req.Pattern, req.Path, req.Query), Header: header,
		Lead: func() http.Handler { return middleware.Restart(router{app.Server()}) },
	}, &d)
	for _, name := range []string{"Vary", "Cache-Status"} { // middleware in front may have set its own
		for _, value := range header[name] {
			c.Response().Header.Add(name, value)
		}
		delete(header, name)
	}
	switch shared.Outcome {
	case middleware.Stored, middleware.Joined, middleware.Led:
		setHeader(c, header)
		c.Status(shared.Status).Response().SetBody(shared.Body)
		return true, d
	case middleware.Left: // or its time has ended
		c.Status(http.StatusServiceUnavailable)
		return true, d
	}
	return false, d
}

// withTarget returns r with the route and target that the guard sees.
func withTarget(r *http.Request, pattern, path, query string) *http.Request {
	u := &url.URL{Path: path, RawQuery: query}
	if plain, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = plain, path
	}
	r = r.WithContext(r.Context())
	r.Pattern, r.URL = pattern, u
	return r
}
