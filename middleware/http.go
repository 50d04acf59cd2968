package middleware

import (
	"net/http"

	"github.com/hotparam/hotparam/middleware/internal/bodies"
	"github.com/hotparam/hotparam/middleware/internal/meter"
	"github.com/hotparam/hotparam/rules"
)

// Handler returns a handler that passes allowed requests to next. As a
// func(http.Handler) http.Handler it is a middleware for most routers. If next is an
// *[http.ServeMux], it is the default source of requests' routes; see [WithRoute]. Requests of hot
// keys may be answered together with others; see [WithSharer] and, for what next may have to do,
// [Leader].
func (g *Guard) Handler(next http.Handler) http.Handler {
	route := g.opts.route
	if mux, ok := next.(*http.ServeMux); ok && route == nil {
		var o options
		WithMux(mux)(&o)
		route = o.route
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		steps := AllSteps
		if g.rules.Load().shares {
			if x := g.runOf(r); x != nil {
				x.pass(w, r, next)
				return
			}
			if sharesMethod(r.Method) && r.ContentLength == 0 {
				steps = CountStep
			} else if !IsSafe(r.Method) {
				var response *meter.Response
				host, path, query := r.Host, r.URL.EscapedPath(), r.URL.RawQuery // which next may change
				if g.remembersAnswers(path) {
					response = &meter.Response{ResponseWriter: w}
					w = response.WithInterfacesOf(w)
				}
				defer func() {
					status := 0 // not known, in case a key becomes hot until now
					if response != nil {
						status = response.Status
					}
					g.Changed(status, host, path, query)
				}()
			}
		}
		d, ticket := g.examine(r, route, Request{Steps: steps})
		if held, ok := r.Body.(*bodies.Held); ok {
			defer held.Release()
		}
		if _, ok := d.From.(*sharedKey); ok {
			g.serveShared(w, r, route, next, d)
			return
		}
		g.respond(w, r, next, &d, ticket)
	})
}

// examine implements Begin for an HTTP request. req has its steps, and whether it waits. If the
// function of an option panics, the request passes. Panics of the guarded handler are not recovered.
func (g *Guard) examine(r *http.Request, route func(*http.Request) string, req Request) (d rules.Decision, t *Ticket) {
	defer g.failOpen(&d)
	req.Context, req.Method, req.Path, req.Query = r.Context(), r.Method, r.URL.EscapedPath(), r.URL.RawQuery
	req.Pattern, req.HTTP = r.Pattern, r
	if route != nil { // it precedes the pattern, which an outer mux may have set
		req.Pattern = route(r)
	}
	return d, g.check(&req, true, &d)
}

// respond answers a request by its handler, or refuses it.
func (g *Guard) respond(w http.ResponseWriter, r *http.Request, next http.Handler, d *rules.Decision, ticket *Ticket) {
	if h, ok := d.From.(*handled); ok {
		h.respond(w, r, *d)
		return
	}
	spec, _ := d.From.(*limitSpec)
	if !d.Allowed {
		writeRefusal(w, r, d, spec)
		return
	}
	if spec != nil {
		spec.setHeaders(w.Header(), d)
	}
	if ticket == nil {
		next.ServeHTTP(w, r)
		return
	}
	ticket.serve(w, r, next)
}

// serveShared answers an HTTP request that is counted and has a hot key whose rule has on_hot.
func (g *Guard) serveShared(w http.ResponseWriter, r *http.Request, route func(*http.Request) string, next http.Handler, d rules.Decision) {
	x := &Exchange{HTTP: r, Header: w.Header(), Lead: func() http.Handler { return next }}
	if l, ok := next.(Leader); ok {
		x.Lead = l.Lead
	}
	shared := g.share(d.From.(*sharedKey), x, &d, func(step Request) (rules.Decision, *Ticket) {
		return g.examine(r, route, step)
	})
	switch {
	case shared.Outcome.answers():
		writeBody(w, r, shared.Status, shared.Body)
	case shared.Outcome == Refused:
		g.respond(w, r, next, &d, nil)
	case shared.Outcome == Left: // or its time has ended, and the client waits for an answer
		w.WriteHeader(http.StatusServiceUnavailable)
	case shared.Outcome == Alone:
		d, ticket := g.examine(r, route, Request{Steps: LimitStep})
		g.respond(w, r, next, &d, ticket)
	}
}

// Refuse answers a refused request with the default answer of [rules.Decision.Answer]. It is
// for functions of [WithLimited].
func Refuse(w http.ResponseWriter, r *http.Request, d rules.Decision) {
	writeRefusal(w, r, &d, nil)
}
