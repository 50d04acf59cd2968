package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Decider]. Hotparam is required.
type Config struct {
	Hotparam *hotparam.Hotparam
	// RawPaths matches rules against the path as the gateway sends it. By default the path is
	// cleaned first; see [CleanPath].
	RawPaths bool
	// TrustCaller uses [Call].Caller of the calls of every door.
	TrustCaller bool
}

// Decider decides calls by the rules of one file. It is safe for concurrent use.
type Decider struct {
	config Config
}

// New returns a decider. The Hotparam should be opened with [WithContext].
func New(c Config) (*Decider, error) {
	if c.Hotparam == nil {
		return nil, errors.New("gateway: New needs a Hotparam")
	}
	return &Decider{config: c}, nil
}

// Begin counts and decides a call, as [middleware.Guard.Begin] does for a request. It never
// waits beyond the deadline of ctx: if a rule makes requests wait, a request whose delay exceeds
// the deadline is refused. If the decision panics, the call passes.
//
// The caller must end the ticket, which may be nil, when the request is done. A door whose
// gateway does not report the end of requests ends it at once. Other doors keep it in a
// [Tickets].
func (d *Decider) Begin(ctx context.Context, c *Call) (decision rules.Decision, ticket *middleware.Ticket) {
	defer func() {
		if recover() != nil {
			decision, ticket = rules.Decision{Allowed: true, Reason: rules.ReasonOpen}, nil
		}
	}()
	switch {
	case c.Resource == "":
		return d.config.Hotparam.Begin(d.request(ctx, c))
	case c.NoWait:
		decisions, tickets := d.Together(ctx, []Call{*c})
		return decisions[0], tickets[0]
	}
	return d.config.Hotparam.Guard().EnterCost(withParams(ctx, c.Context), c.Resource, c.Params...)
}

// request returns the middleware's request for a call.
func (d *Decider) request(ctx context.Context, c *Call) middleware.Request {
	if c.Resource != "" {
		return middleware.Request{Context: withParams(ctx, c.Context), Pattern: c.Resource, NoWait: c.NoWait}
	}
	t := parseTarget(c.Method, c.Target, !d.config.RawPaths)
	in := middleware.Request{
		Context: withParams(ctx, c.Context), Method: c.Method, Path: t.path, Query: t.query, NoWait: c.NoWait, Steps: c.Steps,
		MakeHTTP: func() *http.Request { return makeHTTP(ctx, c, &t) },
	}
	if d.config.TrustCaller || c.FromProgram {
		in.Caller = c.Caller
	}
	return in
}

// makeHTTP returns the *http.Request that the application would receive. Its body is empty,
// because gateways do not send the body.
func makeHTTP(ctx context.Context, c *Call, t *target) *http.Request {
	r := &http.Request{
		Method: c.Method, URL: &url.URL{RawPath: t.path, RawQuery: t.query}, RequestURI: c.Target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: c.Header, Host: t.host, RemoteAddr: remoteAddr(c.Addr), Body: http.NoBody,
	}
	if r.URL.Path, _ = url.PathUnescape(t.path); r.URL.Path == "" {
		r.URL.Path = t.path
	}
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	if r.Host == "" {
		r.Host = r.Header.Get("Host")
	}
	return r.WithContext(ctx)
}

// remoteAddr returns addr in the form of [http.Request.RemoteAddr], with port 0 if it has none.
func remoteAddr(addr string) string {
	if ip, err := netip.ParseAddr(addr); err == nil {
		return net.JoinHostPort(ip.String(), "0")
	}
	return addr
}

// Together decides calls that pass together or not at all; see [middleware.Guard.BeginAll].
func (d *Decider) Together(ctx context.Context, calls []Call) ([]rules.Decision, []*middleware.Ticket) {
	parts := make([]middleware.Part, len(calls))
	for i := range calls {
		parts[i] = middleware.Part{Request: d.request(ctx, &calls[i]), Params: calls[i].Params, Peek: calls[i].Peek}
	}
	return d.config.Hotparam.Guard().BeginAll(parts)
}
