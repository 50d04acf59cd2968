package hpfiber

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/hotparam/hotparam/middleware"
)

// router serves a run, a request of net/http, by an application from its beginning.
type router struct{ *fasthttp.Server }

type runKey struct{}

func (h router) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var conn net.Conn = runConn{}
	if r.TLS != nil {
		conn = secureRunConn{}
	}
	in := new(fasthttp.RequestCtx)
	in.Init2(conn, h.Logger, true)
	in.Request.Header.SetMethod(r.Method)
	in.Request.SetRequestURI(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			in.Request.Header.Add(name, value)
		}
	}
	in.Request.SetHost(r.Host)
	if r.TLS != nil {
		in.URI().SetScheme("https")
	}
	in.SetUserValue(runKey{}, r)
	defer func() {
		in.Response.Reset() // closes a stream
		in.ResetUserValues()
	}()
	h.Handler(in)
}

// runOf returns the request of a run, or nil if the request is a client's.
func runOf(c fiber.Ctx) *http.Request {
	r, _ := c.RequestCtx().UserValue(runKey{}).(*http.Request)
	return r
}

// pass passes a run to the handlers after the middleware.
func pass(c fiber.Ctx, run *http.Request, routes *routes) (err error) {
	in := newRequest(c)
	pattern, path := routes.resolve(c, in.path)
	middleware.PassRun(withTarget(run, pattern, path, in.query), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if w == nil {
			err = c.Next()
			return
		}
		user := c.Context()
		c.SetContext(r.Context())
		defer c.SetContext(user)
		c.Response().Reset() // middleware in front serves each request itself
		if err = c.Next(); !record(c, w, err) {
			middleware.Withhold(w)
		}
	}))
	return err
}

// record writes the response of a run to w, and reports whether it is complete.
func record(c fiber.Ctx, w http.ResponseWriter, err error) bool {
	out := c.Response()
	switch {
	case err != nil && statusOf(err) >= http.StatusInternalServerError:
		w.WriteHeader(http.StatusInternalServerError)
		return true
	case err != nil || out.IsBodyStream() || c.RequestCtx().Hijacked():
		return false
	}
	for name, value := range out.Header.All() {
		switch name := http.CanonicalHeaderKey(string(name)); name {
		case "Connection", "Content-Length", "Transfer-Encoding":
		default:
			w.Header().Add(name, string(value))
		}
	}
	w.WriteHeader(out.StatusCode())
	_, _ = w.Write(out.Body())
	return true
}

// statusOf returns the status of an error's answer by Fiber's own error handler.
func statusOf(err error) int {
	if with := new(fiber.Error); errors.As(err, &with) {
		return with.Code
	}
	return http.StatusInternalServerError
}

// runConn is the connection of a run, which has none.
type runConn struct{ net.Conn }

func (runConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4zero} }
func (runConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero} }

// secureRunConn is the connection of a run for requests over TLS.
type secureRunConn struct{ runConn }

func (secureRunConn) Handshake() error { return nil }
func (secureRunConn) ConnectionState() tls.ConnectionState {
	return tls.ConnectionState{HandshakeComplete: true}
}
