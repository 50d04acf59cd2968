// Package hpecho guards the routes of an Echo v5 server by hotparam.
//
//	hp, err := hotparam.Open(ctx, "hotparam.yaml")
//	…
//	e := echo.New()
//	e.Use(hpecho.Middleware(hp))
//	e.GET("/users/:id", user) // GET /users/{id}
//
// Rules see Echo's templates and parameters in the syntax of [http.ServeMux]: "/files/*" is
// /files/{path...}, with the parameter path:path, and a segment of text and a parameter,
// "/file.:ext", is the parameter.
//
// echo.go has the middleware, and onhot.go the runs that answer several requests.
package hpecho

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/hotparam/hotparam/middleware/adapter"
)

// Middleware returns a middleware that lets hp, a *hotparam.Hotparam or a
// *middleware.Guard, decide on each request. It may be used in Use of a server or a group, or
// at a route; in Pre the route is not known yet. A refused request is answered, and is not an
// error for the server's error handler. Requests without a route are only subject to rules that
// match by the path or match all.
//
// With on_hot, a run that answers several requests is served by the server from its beginning, and
// only what the handlers behind the middleware write is shared. Errors that they return are answered
// for each request alone.
func Middleware(hp adapter.Guard) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		a := adapter.New(hp, adapter.ParseColons, func(c *handlerCall, w http.ResponseWriter, r *http.Request) {
			c.SetRequest(r)
			if before := c.Response(); w != before {
				defer c.SetResponse(before)
				if !adapter.Wraps(w, before) {
					c.err = serveRun(c.Context, w, next)
					return
				}
				c.SetResponse(w)
			}
			c.err = next(c.Context)
		}, lead)
		return func(c *echo.Context) error { return serve(a, c) }
	}
}

// serve passes a request through the guard.
func serve(a *adapter.Adapter[*handlerCall], c *echo.Context) error {
	var buf [8]string
	route := adapter.Route{Values: buf[:0]}
	switch method := c.RouteInfo().Method; method {
	case "", echo.RouteNotFound: // Path is not the template of a handler
	case http.MethodGet:
		route.Method = method // also for HEAD, by AutoHandleHEAD
		fallthrough
	default:
		route.Template = c.Path()
		for _, v := range c.PathValues() {
			route.Values = append(route.Values, v.Value)
		}
	}
	x := handlerCall{Context: c}
	a.Serve(&x, c.Response(), c.Request(), route)
	return x.err
}

// handlerCall is a request with the error that its handler returns.
type handlerCall struct {
	*echo.Context
	err error
}
