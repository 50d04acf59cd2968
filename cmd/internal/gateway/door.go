package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
)

// Door answers the calls of one kind of gateway. It is safe for concurrent use.
type Door interface {
	// Serve serves the listener until ctx is done, and closes it. In-flight calls then have a
	// bounded time to end. It may be called for several listeners.
	Serve(ctx context.Context, l net.Listener) error
	// Figures returns the counters since the door was created.
	Figures() Figures
}

// DoorConfig configures a door of any kind. Decider is required.
type DoorConfig struct {
	Decider *Decider
	// Tickets holds requests until their end is reported. A door without such reports needs
	// none.
	Tickets *Tickets
	// TLS makes the door accept only TLS. Its ClientAuth sets whether peers need a certificate.
	// Nil means plain text.
	TLS *tls.Config
	// Token must be sent by peers of a door that speaks HTTP. If empty, none is needed.
	Token string
	// Allow are the networks from which peers may connect. Empty means all. Peers of Unix
	// sockets always may.
	Allow []netip.Prefix
	// Timeout is the deadline of a decision, which may query Redis or wait. A request with a
	// longer delay is refused. Zero means the door's default, which is shorter than the timeout
	// of gateways.
	Timeout time.Duration
	// MaxConnections is the maximum number of open connections; see [connlimit.Config]. Zero
	// means the door's default.
	MaxConnections int
	Log            *slog.Logger // nil disables logging
}

// SetDefaults sets the fields that are zero to the door's defaults. It returns an error if a
// required field is missing.
func (c *DoorConfig) SetDefaults(timeout time.Duration, maxConnections int, needsTickets bool) error {
	if c.Decider == nil || needsTickets && c.Tickets == nil {
		return errors.New("gateway: a door needs a Decider, and Tickets if ends are reported to it")
	}
	c.Timeout = cmp.Or(c.Timeout, timeout)
	c.MaxConnections = cmp.Or(c.MaxConnections, maxConnections)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Limiter returns the limiter of the door's connections. Once its peer has spoken the door's
// protocol, a connection is in use until it ends. TLS is left to the door if secure is false.
func (c *DoorConfig) Limiter(secure bool) *connlimit.Limiter {
	conf := connlimit.Config{Max: c.MaxConnections, CloseUsed: true, Allow: c.Allow, Log: c.Log}
	if secure {
		conf.TLS = c.TLS
	}
	return connlimit.New(conf)
}
