package onhot

import (
	"context"
	"crypto/tls"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// leaderContext returns the context of a leader's request. It has no value of the request's
// context, since values carry users, but the server, which is in the key:
// [net/http/httputil.ReverseProxy] panics on a truncated body only if it finds it.
func (c *Cache) leaderContext(r *http.Request) (context.Context, context.CancelFunc) {
	ctx := c.base
	if server := serverOf(r); server != nil {
		ctx = context.WithValue(ctx, http.ServerContextKey, server)
	}
	return context.WithTimeout(ctx, c.config.Deadline)
}

// leaderRequest returns the request that the handler sees instead of r. It has only what is in
// the key. Everything else of r is left out: headers, cookies, the client's address, its
// certificate, values of its context and path values that no wildcard names.
func (p *Policy) leaderRequest(ctx context.Context, r *http.Request) *http.Request {
	target := *r.URL
	target.User = nil
	header := make(http.Header, len(p.headers)+2)
	if codings := acceptedCodings(r.Header["Accept-Encoding"]); codings != "" {
		header["Accept-Encoding"] = []string{codings}
	}
	for _, name := range p.headers {
		if values := r.Header[name]; len(values) > 0 {
			header[name] = slices.Clone(values)
		}
	}
	if len(p.cookies) > 0 {
		if cookies := p.namedCookies(r.Header["Cookie"]); cookies != "" {
			header["Cookie"] = []string{cookies}
		}
	}
	leader := (&http.Request{
		Method: http.MethodGet, URL: &target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: http.NoBody, Host: r.Host, RequestURI: r.RequestURI, Pattern: r.Pattern,
	}).WithContext(ctx)
	if r.TLS != nil {
		leader.TLS = &tls.ConnectionState{HandshakeComplete: true} // for handlers that redirect to https
	}
	for name := range wildcards(r.Pattern) {
		leader.SetPathValue(name, r.PathValue(name))
	}
	return leader
}

// runLeader runs the handler in a goroutine of its own and ends the flight. A panic of the
// handler ends there: each request that waits then runs the handler again, so the panic is
// seen where it would be without a cache.
func (c *Cache) runLeader(f *flight, h http.Handler, leader *http.Request, cancel context.CancelFunc) {
	rec := &Recorder{cache: c, flight: f, header: make(http.Header), abandon: cancel}
	// The flight ends at the deadline even if the handler does not return. Its place in the
	// table stays taken until then, so that each key has at most one such handler.
	stop := context.AfterFunc(leader.Context(), func() { c.end(f, nil, c.contextReason()) })
	returned := false
	defer func() {
		v := recover()
		stop()
		switch {
		case !returned: // it panicked, or called runtime.Goexit
			c.end(f, nil, ReasonPanic)
			c.recordPanic(v)
		case leader.Context().Err() != nil: // what it has written may end there
			c.end(f, nil, c.contextReason())
		default:
			answer, reason := rec.finish()
			c.end(f, answer, reason)
		}
		rec.close()
		cancel()
		c.leave(f)
	}()
	h.ServeHTTP(rec, leader)
	returned = true
}

// contextReason returns why the context of a leader has ended.
func (c *Cache) contextReason() Reason {
	if c.base.Err() != nil {
		return ReasonClosed
	}
	return ReasonDeadline
}

// recordPanic counts and logs a panic of a leader's handler.
func (c *Cache) recordPanic(v any) {
	c.stats.Panics.Add(1)
	if v != nil && v != http.ErrAbortHandler {
		c.panics.Warn(loglimit.LineRate{Burst: 1, Every: time.Minute}, c.config.Log,
			"on_hot: the handler panicked for a request that others join; each of them runs it by itself",
			"panic", v, "stack", string(debug.Stack()))
	}
}
