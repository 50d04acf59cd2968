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
	Log         *slog.Logger // nil disables logging
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
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
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
	return d.config.Hotparam.Begin(d.request(ctx, c))
}

// request returns the middleware's request for a call.
func (d *Decider) request(ctx context.Context, c *Call) middleware.Request {
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

// Enter counts and decides an access to a resource with parameters; see
// [middleware.Guard.EnterCost].
func (d *Decider) Enter(ctx context.Context, resource string, params []rules.Param) (rules.Decision, *middleware.Ticket) {
	return d.config.Hotparam.Guard().EnterCost(ctx, resource, params...)
}

// EnterNow is like Enter but never waits: the caller waits for the decision's Delay. params holds
// the values of ctx:name parameters, by name.
func (d *Decider) EnterNow(ctx context.Context, resource string, list []rules.Param, params map[string]string) (rules.Decision, *middleware.Ticket) {
	decisions, tickets := d.config.Hotparam.Guard().BeginAll([]middleware.Part{{
		Request: middleware.Request{Context: withParams(ctx, params), Pattern: resource, NoWait: true},
		Params:  append(make([]rules.Param, 0, len(list)), list...),
	}})
	return decisions[0], tickets[0]
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

// DecisionPart is one part of a combined decision. It is a call or, if Call is nil, an access to a
// resource with parameters.
type DecisionPart struct {
	Call     *Call
	Resource string
	Params   []rules.Param
	Peek     bool // counts the part and checks whether it would pass, but takes nothing from its limits
}

// Together decides parts that pass together or not at all; see [middleware.Guard.BeginAll].
func (d *Decider) Together(ctx context.Context, parts []DecisionPart) ([]rules.Decision, []*middleware.Ticket) {
	all := make([]middleware.Part, len(parts))
	for i := range parts {
		p := &parts[i]
		all[i].Peek = p.Peek
		if p.Call != nil {
			all[i].Request = d.request(ctx, p.Call)
			continue
		}
		all[i].Request = middleware.Request{Context: ctx, Pattern: p.Resource}
		all[i].Params = append([]rules.Param{}, p.Params...)
	}
	return d.config.Hotparam.Guard().BeginAll(all)
}
