package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/attach"
	"github.com/hotparam/hotparam/middleware"
)

// Config is what a [Decider] is made of.
type Config struct {
	Hotparam *attach.Hotparam
	// RawPaths has rules see a path as the gateway passes it. By default they see it cleaned;
	// see [CleanPath].
	RawPaths bool
	// TrustCaller takes [Call].Caller from any door.
	TrustCaller bool
	Log         *slog.Logger // nil: nothing is logged
}

// Decider decides on calls by the rules of one file. It is safe for concurrent use.
type Decider struct {
	config Config
}

// New returns a decider. The Hotparam should be opened with [WithContext].
func New(c Config) (*Decider, error) {
	if c.Hotparam == nil {
		return nil, errors.New("gateway: New needs a Hotparam")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Decider{config: c}, nil
}

// Begin counts a call and decides on it, as [middleware.Guard.Begin] does for the request. It
// never waits beyond the deadline of ctx: where a rule has requests wait, one whose delay does
// not fit is refused. If anything panics, the call passes.
//
// The ticket, which may be nil, is ended when the request is done: at once by a door that is
// not told, and otherwise by [Tickets].
func (d *Decider) Begin(ctx context.Context, c *Call) (decision hotparam.Decision, ticket *middleware.Ticket) {
	defer func() {
		if recover() != nil {
			decision, ticket = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}, nil
		}
	}()
	return d.config.Hotparam.Begin(d.request(ctx, c))
}

// request returns the request that a call is about.
func (d *Decider) request(ctx context.Context, c *Call) middleware.Request {
	t := parseTarget(c.Method, c.Target, !d.config.RawPaths)
	in := middleware.Request{
		Context: withParams(ctx, c.Context), Method: c.Method, Path: t.path, Query: t.query, NoWait: c.NoWait,
		MakeHTTP: func() *http.Request { return makeHTTP(ctx, c, &t) },
	}
	if d.config.TrustCaller || c.FromProgram {
		in.Caller = c.Caller
	}
	return in
}

// Enter counts and decides on what has a name and parameters; see
// [middleware.Guard.EnterCost].
func (d *Decider) Enter(ctx context.Context, resource string, params []hotparam.Param) (hotparam.Decision, *middleware.Ticket) {
	return d.config.Hotparam.Guard().EnterCost(ctx, resource, params...)
}

// EnterNow is Enter for a caller that waits by itself: the Delay of the decision is how long.
// params holds the parameters ctx:name that the application knows, by name.
func (d *Decider) EnterNow(ctx context.Context, resource string, list []hotparam.Param, params map[string]string) (hotparam.Decision, *middleware.Ticket) {
	decisions, tickets := d.config.Hotparam.Guard().BeginAll([]middleware.Part{{
		Request: middleware.Request{Context: withParams(ctx, params), Pattern: resource, NoWait: true},
		Params:  append(make([]hotparam.Param, 0, len(list)), list...),
	}})
	return decisions[0], tickets[0]
}

// makeHTTP returns the request of net/http that the application would get. It has no body:
// gateways pass none.
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

// remoteAddr writes an address as net/http does, with a port.
func remoteAddr(addr string) string {
	if ip, err := netip.ParseAddr(addr); err == nil {
		return net.JoinHostPort(ip.String(), "0")
	}
	return addr
}
