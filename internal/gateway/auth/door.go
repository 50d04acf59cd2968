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

	"github.com/hotparam/hotparam/internal/countset"
	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/httpserve"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Defaults of [Config].
const (
	// DefaultTimeout is shorter than the 20 ms of Envoy's default configuration.
	DefaultTimeout        = 15 * time.Millisecond
	DefaultMaxConnections = 1024
	// DefaultMaxHeaderBytes is twice the limit of Envoy, and four times that of nginx, on a
	// client's headers.
	DefaultMaxHeaderBytes = 128 << 10
)

// Endpoint is one path that a door serves.
type Endpoint struct {
	// Path begins with "/". It is a prefix with the scheme Envoy, and exact with others.
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

// Config configures a [Door]. Decider is required.
type Config struct {
	Decider *gateway.Decider
	// Endpoints have distinct paths. If empty, they are the [DefaultEndpoints].
	Endpoints []Endpoint
	// Timeout is the longest delay of a request where a rule makes requests wait. A request
	// with a longer delay is refused. Timeout should be shorter than the gateway's own. Zero
	// means [DefaultTimeout].
	Timeout time.Duration
	// TLS makes the door serve TLS. Its ClientAuth sets whether peers need a certificate. Nil
	// means plain HTTP.
	TLS *tls.Config
	// Token must be sent in X-Hotparam-Token; other requests get 401. Empty means that no
	// token is needed.
	Token string
	// Allow are the networks from which peers may connect. Empty means all. Peers of Unix
	// sockets are always allowed.
	Allow gateway.Peers
	// MaxConnections is the maximum number of open connections. At the maximum, a new
	// connection evicts the one that has been idle longest. Zero means
	// [DefaultMaxConnections].
	MaxConnections int
	// MaxHeaderBytes is the maximum size of a request's line and headers; a larger request
	// gets 431. Zero means [DefaultMaxHeaderBytes].
	MaxHeaderBytes int
	Log            *slog.Logger // nil disables logging
}

// Door answers the subrequests of gateways over HTTP. It is safe for concurrent use. Serve may be
// called for several listeners.
type Door struct {
	config    Config
	token     gateway.Token
	exact     map[string]Scheme // by path
	prefixes  []Endpoint        // with scheme Envoy; Path has no trailing "/"
	admission gateway.Admission // without Max: server enforces MaxConnections
	server    *httpserve.Server
	lines     [problems]loglimit.Limit
	counters  Counters[atomic.Int64]
}

// Counters count the requests and connections of a door. N is int64 in [Stats] and
// [atomic.Int64] in a running door.
type Counters[N any] struct {
	gateway.ConnCounters[N]
	Passed       N // requests passed by a decision
	Refused      N // requests refused
	Missing      N // requests that lack a header of the scheme; without the URI they pass undecided
	Ambiguous    N // requests refused for a repeated header of the scheme
	Unauthorized N // requests without the token
	Unknown      N // requests with a path that is not an endpoint
	Unsendable   N // of Refused: the gateway cannot send the rule's response
}

// Stats are the counters of a door since it was created.
type Stats struct {
	Counters[int64]
	HTTP httpserve.Stats
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
	d.admission = gateway.Admission{Peers: c.Allow, Counters: &d.counters.ConnCounters, Log: c.Log}
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
		return fmt.Errorf("endpoint %q: invalid scheme", e.Path)
	}
	below := strings.TrimRight(e.Path, "/") + "/"
	for _, other := range d.config.Endpoints {
		if other == e {
			continue
		}
		if other.Path == e.Path || e.Scheme == Envoy && strings.HasPrefix(other.Path+"/", below) {
			return fmt.Errorf("endpoint %q (%s): %q (%s) has the same path", e.Path, e.Scheme, other.Path, other.Scheme)
		}
	}
	if e.Scheme == Envoy {
		d.prefixes = append(d.prefixes, Endpoint{strings.TrimRight(e.Path, "/"), Envoy})
	} else {
		d.exact[e.Path] = e.Scheme
	}
	return nil
}

// Serve serves the listener until ctx is done, and closes it. In-flight requests then have a
// second to end.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	return d.server.Serve(ctx, d.admission.SecureListener(d.admission.Listener(l), d.config.TLS))
}

// Stats returns the counters.
func (d *Door) Stats() Stats {
	return Stats{Counters: countset.Load[Counters[int64]](&d.counters), HTTP: d.server.Stats()}
}
