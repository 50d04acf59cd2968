package auth

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/httpserve"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Defaults of [Config].
const (
	// DefaultTimeout is below the 20 ms that Envoy's default configuration waits.
	DefaultTimeout        = 15 * time.Millisecond
	DefaultMaxConnections = 1024
	// DefaultMaxHeaderBytes is twice what Envoy, and four times what nginx, takes from a client.
	DefaultMaxHeaderBytes = 128 << 10
)

// Endpoint is one path at which a door is asked.
type Endpoint struct {
	// Path begins with "/". Envoy asks below it, others ask at it.
	Path   string
	Scheme Scheme
}

// DefaultEndpoints returns one endpoint for each scheme: /forwarded, /original, /envoy and
// /nginx.
func DefaultEndpoints() (all []Endpoint) {
	for s := Forwarded; s <= Nginx; s++ {
		all = append(all, Endpoint{Path: "/" + s.String(), Scheme: s})
	}
	return all
}

// Config is what a [Door] is made of; Decider is required.
type Config struct {
	Decider *gateway.Decider
	// Endpoints have different paths; none are [DefaultEndpoints].
	Endpoints []Endpoint
	// Timeout is how long a request may wait where a rule has it wait; one whose delay does
	// not fit is refused. It should be below the gateway's own timeout. Zero means
	// [DefaultTimeout].
	Timeout time.Duration
	// TLS is used if it is not nil. Its ClientAuth decides which certificates may ask.
	TLS *tls.Config
	// Token, unless it is empty, has to be sent in X-Hotparam-Token; others get 401.
	Token string
	// Allow are the networks whose connections are accepted; none means all. Unix sockets
	// are always accepted.
	Allow gateway.Peers
	// MaxConnections bounds the connections, of which the idlest gives way to a new one. Zero
	// means [DefaultMaxConnections].
	MaxConnections int
	// MaxHeaderBytes bounds the line and the headers of a request; what is longer gets 431.
	// Zero means [DefaultMaxHeaderBytes].
	MaxHeaderBytes int
	Log            *slog.Logger // nil: nothing is logged
}

// Door decides on the requests that gateways ask about over HTTP. It is safe for concurrent
// use; Serve may be called for several listeners.
type Door struct {
	config   Config
	token    gateway.Token
	exact    map[string]Scheme // by path
	prefixes []Endpoint        // of Envoy; Path has no "/" at its end
	server   *httpserve.Server
	lines    [problems]loglimit.Limit
	counters struct {
		passed, refused, missing, ambiguous, unauthorized, unknown, foreign, unsendable atomic.Int64
	}
}

// Stats are a door's counters since it was made.
type Stats struct {
	Passed       int64 // requests that were let pass by a decision
	Refused      int64 // requests that were refused
	Missing      int64 // requests without a header of the scheme; without the URI they passed undecided
	Ambiguous    int64 // requests with a header of the scheme several times, of which the last counted
	Unauthorized int64 // requests without the token
	Unknown      int64 // requests at a path that is no endpoint
	Foreign      int64 // connections from networks that are not allowed
	Unsendable   int64 // of Refused: requests whose rule has an answer that the gateway cannot send

	TooLarge   int64 // requests whose headers are over MaxHeaderBytes, which were refused
	Unreadable int64 // requests that are none of HTTP

	Connections        int   // that are open
	ConnectionsEvicted int64 // idle ones that were closed to make room
	ConnectionsRefused int64 // closed at once, since none of the others was idle
	ConnectionsSlow    int64 // closed since a request did not come in time
}

// New returns a door. It starts nothing.
func New(c Config) (*Door, error) {
	if c.Decider == nil {
		return nil, errors.New("gateway/auth: New needs a Decider")
	}
	if len(c.Endpoints) == 0 {
		c.Endpoints = DefaultEndpoints()
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d := &Door{config: c, token: gateway.NewToken(c.Token), exact: make(map[string]Scheme)}
	for _, e := range c.Endpoints {
		if err := d.add(e); err != nil {
			return nil, fmt.Errorf("gateway/auth: %w", err)
		}
	}
	d.server = httpserve.New(httpserve.Config{
		Handler: d, Log: c.Log,
		MaxConnections: cmp.Or(c.MaxConnections, DefaultMaxConnections),
		MaxHeaderBytes: cmp.Or(c.MaxHeaderBytes, DefaultMaxHeaderBytes),
	})
	return d, nil
}

func (d *Door) add(e Endpoint) error {
	if !strings.HasPrefix(e.Path, "/") || strings.ContainsAny(e.Path, "?# %") {
		return fmt.Errorf("endpoint %q: a path begins with / and has no query", e.Path)
	}
	if e.Scheme < Forwarded || e.Scheme > Nginx {
		return fmt.Errorf("endpoint %q: no scheme", e.Path)
	}
	below := strings.TrimRight(e.Path, "/") + "/"
	for _, other := range d.config.Endpoints {
		if other == e {
			continue
		}
		if other.Path == e.Path || e.Scheme == Envoy && strings.HasPrefix(other.Path+"/", below) {
			return fmt.Errorf("endpoint %q (%s): %q (%s) is asked at the same path", e.Path, e.Scheme, other.Path, other.Scheme)
		}
	}
	if e.Scheme == Envoy {
		d.prefixes = append(d.prefixes, Endpoint{strings.TrimRight(e.Path, "/"), Envoy})
	} else {
		d.exact[e.Path] = e.Scheme
	}
	return nil
}

// Serve answers a listener's requests until ctx ends, and then for at most a second those
// that have come. It closes the listener.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	l = d.config.Allow.Listener(l, &d.counters.foreign)
	if d.config.TLS != nil {
		l = tls.NewListener(l, d.config.TLS)
	}
	return d.server.Serve(ctx, l)
}

// Stats returns the counters.
func (d *Door) Stats() Stats {
	c, server := &d.counters, d.server.Stats()
	return Stats{
		Passed: c.passed.Load(), Refused: c.refused.Load(), Missing: c.missing.Load(), Ambiguous: c.ambiguous.Load(),
		Unauthorized: c.unauthorized.Load(), Unknown: c.unknown.Load(), Foreign: c.foreign.Load(), Unsendable: c.unsendable.Load(),
		TooLarge: server.TooLarge, Unreadable: server.Unreadable,
		Connections: server.Connections, ConnectionsEvicted: server.Evicted, ConnectionsRefused: server.Refused,
		ConnectionsSlow: server.Slow,
	}
}
