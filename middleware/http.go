package middleware

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam"
)

// Handler returns a handler that passes the requests that are allowed to next. As a
// func(http.Handler) http.Handler it is a middleware for most routers. If next is an
// *[http.ServeMux], it is the default source of requests' routes; see [WithRoute].
func (g *Guard) Handler(next http.Handler) http.Handler {
	route := g.opts.route
	if mux, ok := next.(*http.ServeMux); ok && route == nil {
		var o options
		WithMux(mux)(&o)
		route = o.route
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, o := g.examine(r, route)
		if held, ok := r.Body.(*heldBody); ok {
			defer held.release()
		}
		g.opts.headers.write(w.Header(), &d, o.spec)
		switch {
		case d.Reason == hotparam.ReasonServed:
			g.answer(w, r, d, o.spec)
		case !d.Allowed:
			g.opts.limited(w, r, d)
		case o.ticket != nil:
			o.ticket.serve(w, r, next)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// examine is Begin for an HTTP request. The request also passes if the function of an option
// panics. Panics of the guarded handler are not recovered.
func (g *Guard) examine(r *http.Request, route func(*http.Request) string) (d hotparam.Decision, o outcome) {
	defer g.failOpen(&d)
	if g.opts.skip != nil && g.opts.skip(r) {
		return hotparam.Decision{Allowed: true}, o
	}
	req := Request{
		Context: r.Context(), Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery,
		Pattern: r.Pattern, Caller: g.opts.caller(r), HTTP: r,
	}
	if route != nil { // it takes precedence over the pattern, which an outer mux may have set
		req.Pattern = route(r)
	}
	o = g.check(&req, true, &d)
	return d, o
}

// answer answers in place of the handler.
func (g *Guard) answer(w http.ResponseWriter, r *http.Request, d hotparam.Decision, spec *limitSpec) {
	if h := g.opts.serve[d.Rule]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	a := spec.limit.Serve
	if a == nil { // neither the rules nor an option have an answer
		g.opts.limited(w, r, d)
		return
	}
	if a.Type != "" {
		w.Header().Set("Content-Type", a.Type)
	}
	w.Header().Set("Cache-Control", "no-store") // it is not the handler's answer
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body) // the client may have gone
}

// remoteHost returns the host of the request's RemoteAddr.
func remoteHost(r *http.Request) string {
	colon := strings.LastIndexByte(r.RemoteAddr, ':')
	if colon < 0 {
		return r.RemoteAddr
	}
	return strings.Trim(r.RemoteAddr[:colon], "[]")
}

// problem is an RFC 9457 body, of the type that
// draft-ietf-httpapi-ratelimit-headers registers.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// Refuse answers a request that was refused, with a problem body (RFC 9457):
//
//   - 429 (RFC 6585): the client exceeded its limit;
//   - 503 (RFC 9110, 15.6.4): the limit of concurrent requests is reached, or the backend
//     that decides is unavailable;
//   - 403: no rule matches, or a rule blocks a value;
//   - 400: the body cannot be read, and a rule refuses such requests.
//
// Retry-After is in whole seconds, rounded up (RFC 9110, 10.2.3). It is absent if a retry
// cannot pass. The body contains the rule's id but no parameters.
func Refuse(w http.ResponseWriter, _ *http.Request, d hotparam.Decision) {
	p := problem{Type: quotaExceeded, Status: http.StatusTooManyRequests, Violated: []string{d.Rule}}
	seconds := wholeSeconds(d.RetryAfter)
	switch d.Reason {
	case hotparam.ReasonNoMatch, hotparam.ReasonBlocked:
		p = problem{Type: "about:blank", Status: http.StatusForbidden}
		seconds = 0
	case hotparam.ReasonUnread:
		p = problem{Type: "about:blank", Status: http.StatusBadRequest, Detail: "the body is too large, compressed, or not what its Content-Type says"}
		seconds = 0
	case hotparam.ReasonBusy, hotparam.ReasonAway:
		p.Type, p.Status = reducedCapacity, http.StatusServiceUnavailable
		seconds = max(1, seconds)
		p.Detail = "no room for such requests now"
	default:
		p.Detail = "too many requests for these parameters"
	}
	if seconds > 0 {
		retry := strconv.FormatInt(seconds, 10)
		w.Header().Set("Retry-After", retry)
		p.Detail += "; retry in " + retry + " s"
	}
	p.Title = http.StatusText(p.Status)
	body, err := json.Marshal(p)
	if err != nil { // strings and numbers always marshal
		http.Error(w, p.Title, p.Status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have gone
}
