// Package hpgin guards the routes of a gin engine by hotparam.
//
//	hp, err := hotparam.Open(ctx, "hotparam.yaml")
//	…
//	r := gin.Default()
//	r.Use(hpgin.Middleware(hp))
//	r.GET("/users/:id", user) // GET /users/{id}
//
// Rules see gin's templates and parameters in the syntax of [http.ServeMux]: "/files/*path"
// is /files/{path...}, whose value has no slash before it, and a segment of text and a
// parameter, "/v:major", is the parameter.
//
// gin.go has the middleware, and onhot.go the runs that answer several requests.
package hpgin

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/hotparam/hotparam/middleware/adapter"
)

// Middleware returns a middleware that lets hp, a *hotparam.Hotparam or a
// *middleware.Guard, decide on each request. It may be used in Use of an engine or a group, or
// before the handlers of a route. A refused request is aborted. Requests without a route are
// only subject to rules that match by the path or match all.
func Middleware(hp adapter.Guard, opts ...Option) gin.HandlerFunc {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	a := adapter.New(hp, adapter.ParseColons, o.next, o.lead)
	return func(c *gin.Context) {
		var buf [8]string
		route := adapter.Route{Template: c.FullPath(), Values: buf[:0]}
		for i, p := range c.Params {
			if i == len(c.Params)-1 && strings.Contains(route.Template, "/*") {
				p.Value = strings.TrimPrefix(p.Value, "/")
			}
			route.Values = append(route.Values, p.Value)
		}
		if !a.Serve(c, c.Writer, c.Request, route) {
			c.Abort()
		}
	}
}

// next calls the handlers after the middleware.
func (o *options) next(c *gin.Context, w http.ResponseWriter, r *http.Request) {
	c.Request = r
	before := c.Writer
	if w == http.ResponseWriter(before) {
		c.Next()
		return
	}
	defer func() { c.Writer = before }()
	if !adapter.Wraps(w, before) {
		o.serveRun(c, w)
		return
	}
	c.Writer = &writer{ResponseWriter: before, guard: w}
	c.Next()
}

// writer sends responses through the guard's writer, which measures them and passes them on to
// gin's. Status, Size and Written are still those of gin's writer.
type writer struct {
	gin.ResponseWriter
	guard http.ResponseWriter
}

func (w *writer) Header() http.Header               { return w.guard.Header() }
func (w *writer) WriteHeader(status int)            { w.guard.WriteHeader(status) }
func (w *writer) Write(p []byte) (int, error)       { return w.guard.Write(p) }
func (w *writer) WriteString(s string) (int, error) { return io.WriteString(w.guard, s) }
func (w *writer) Unwrap() http.ResponseWriter       { return w.guard }
func (w *writer) Flush()                            { _ = http.NewResponseController(w.guard).Flush() }
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.guard).Hijack()
}
