package middleware

import (
	"net/http"
	"strings"

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
				var meter *responseMeter
				host, path, query := r.Host, r.URL.EscapedPath(), r.URL.RawQuery // which next may change
				if g.remembersAnswers(path) {
					meter = &responseMeter{ResponseWriter: w}
					w = meter.withInterfacesOf(w)
				}
				defer func() {
					status := 0 // not known, in case a key becomes hot until now
					if meter != nil {
						status = meter.status
					}
					g.Changed(status, host, path, query)
				}()
			}
		}
		d, ticket := g.examine(r, route, Request{Steps: steps})
		if held, ok := r.Body.(*heldBody); ok {
			defer held.release()
		}
		if _, ok := d.From.(*sharedKey); ok {
			g.serveShared(w, r, route, next, d)
			return
		}
		g.respond(w, r, next, &d, ticket)
	})
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

// writeBody writes an answer whose headers are set.
func writeBody(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	if r.Method == http.MethodHead {
		setLength(w.Header(), status, len(body))
		w.WriteHeader(status)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}

// remoteHost returns the host of the request's RemoteAddr.
func remoteHost(r *http.Request) string {
	colon := strings.LastIndexByte(r.RemoteAddr, ':')
	if colon < 0 {
		return r.RemoteAddr
	}
	return strings.Trim(r.RemoteAddr[:colon], "[]")
}

// Refuse answers a refused request with the default answer of [rules.Decision.Answer]. It is
// for functions of [WithLimited].
func Refuse(w http.ResponseWriter, r *http.Request, d rules.Decision) {
	writeRefusal(w, r, &d, nil)
}
