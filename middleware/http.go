package middleware

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam"
)

// Handler guards next. Its type makes it a middleware for routers that take
// func(http.Handler) http.Handler. Where next is a *http.ServeMux, requests get
// their route from it, unless an option says otherwise.
func (g *Guard) Handler(next http.Handler) http.Handler {
	route := g.opts.route
	if mux, ok := next.(*http.ServeMux); ok && route == nil {
		var o options
		WithMux(mux)(&o)
		route = o.route
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, ticket := g.examine(r, route)
		switch {
		case !d.Allowed:
			g.opts.limited(w, r, d)
		case ticket != nil:
			ticket.serve(w, r, next)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// examine is Begin for an HTTP request. A panic of an option's function, too,
// lets the request pass; one of the guarded handler is none of our business.
func (g *Guard) examine(r *http.Request, route func(*http.Request) string) (d hotparam.Decision, t *Ticket) {
	defer g.failOpen(&d)
	if g.opts.skip != nil && g.opts.skip(r) {
		return hotparam.Decision{Allowed: true}, nil
	}
	req := Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Pattern: r.Pattern, Caller: g.opts.caller(r)}
	if route != nil { // it knows better than a mux further out, which may have set a pattern too
		req.Pattern = route(r)
	}
	return g.Begin(req)
}

// remoteHost is the host of the address that a request came from.
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

const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// Refuse answers a request that was refused: 429 with Retry-After in whole
// seconds (RFC 9110, 10.2.3) and a problem body (RFC 9457); 403 for a request
// that no rule matches, or with a value that a rule blocks. It tells the rule's id
// but no parameter.
func Refuse(w http.ResponseWriter, _ *http.Request, d hotparam.Decision) {
	p := problem{
		Type:   quotaExceeded,
		Title:  http.StatusText(http.StatusTooManyRequests),
		Status: http.StatusTooManyRequests,
	}
	if d.Reason == hotparam.ReasonNoMatch || d.Reason == hotparam.ReasonBlocked {
		p = problem{Type: "about:blank", Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden}
	} else {
		seconds := max(1, int64((d.RetryAfter+time.Second-1)/time.Second))
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		p.Detail = "too many requests for these parameters; retry in " + strconv.FormatInt(seconds, 10) + " s"
		p.Violated = []string{d.Rule}
	}
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
