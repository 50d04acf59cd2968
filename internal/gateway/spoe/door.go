package spoe

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Defaults of [Config].
const (
	// DefaultTimeout is shorter than the 50 ms in HAProxy's configuration in deploy/gateways.
	DefaultTimeout = 40 * time.Millisecond
	// DefaultMaxConnections is far more than HAProxy needs: with pipelining, a few for each
	// of its threads.
	DefaultMaxConnections = 1024
	// DefaultMaxFrame is larger than HAProxy's default of 16,380, which follows from its
	// tune.bufsize.
	DefaultMaxFrame = 64 << 10
)

const (
	maxTimeout       = 10 * time.Second // also of a timeout in a message
	maxInFlight      = 64               // NOTIFY frames of one connection
	maxAllInFlight   = 1024             // NOTIFY frames of all connections
	drainWithin      = 2 * time.Second
	defaultHello     = 5 * time.Second
	defaultFrame     = 5 * time.Second
	defaultIdle      = 10 * time.Minute // HAProxy's own timeout is set in its configuration
	defaultWrite     = 5 * time.Second
	acceptRetryAfter = 50 * time.Millisecond
)

// Config configures a [Door]. Decider is required.
type Config struct {
	Decider *gateway.Decider
	// Tickets holds requests until a message reports their end. If nil, requests cost nothing
	// and hold no permits.
	Tickets *gateway.Tickets
	// TLS makes the door accept only TLS. Its ClientAuth sets whether peers need a
	// certificate. Nil means plain text.
	TLS *tls.Config
	// Allow are the networks from which peers may connect. Empty means all. Peers of Unix
	// sockets are always allowed.
	Allow gateway.Peers
	// Timeout is the deadline of a decision, which may query Redis or wait. A message can set
	// another. Zero means [DefaultTimeout].
	Timeout time.Duration
	// MaxConnections is the maximum number of open connections. Zero means
	// [DefaultMaxConnections].
	MaxConnections int
	// MaxFrame is the maximum size of a frame, in bytes. HAProxy can choose a smaller one in
	// the handshake. Zero means [DefaultMaxFrame].
	MaxFrame int
	// Log receives warnings, such as errors in HAProxy's configuration, at most one a minute
	// of each kind. Nil disables logging.
	Log *slog.Logger
}

// Door serves HAProxy. It is safe for concurrent use.
type Door struct {
	decider   *gateway.Decider
	tickets   *gateway.Tickets
	tls       *tls.Config
	admission gateway.Admission
	timeout   time.Duration
	frameSize int
	inFlight  int
	log       *slog.Logger

	helloWithin, frameWithin, idle, writeWithin time.Duration

	slots    chan struct{} // one element for each in-flight NOTIFY of all connections
	counters Counters[atomic.Int64]
	logs     struct {
		message, incomplete, unheld, cut, broken, panicked, accept loglimit.Limit
	}
}

// New returns a door. It starts nothing; see [Door.Serve].
func New(c Config) (*Door, error) {
	switch {
	case c.Decider == nil:
		return nil, errors.New("spoe: Config.Decider is missing")
	case c.Timeout < 0 || c.Timeout > maxTimeout:
		return nil, fmt.Errorf("spoe: Config.Timeout is %s, must be from 0 to %s", c.Timeout, maxTimeout)
	case c.MaxConnections < 0:
		return nil, fmt.Errorf("spoe: Config.MaxConnections is %d, must not be negative", c.MaxConnections)
	case c.MaxFrame != 0 && (c.MaxFrame < minFrameSize || c.MaxFrame > 1<<20):
		return nil, fmt.Errorf("spoe: Config.MaxFrame is %d, must be from %d to %d", c.MaxFrame, minFrameSize, 1<<20)
	}
	d := &Door{
		decider: c.Decider, tickets: c.Tickets, tls: c.TLS,
		timeout: c.Timeout, frameSize: c.MaxFrame, inFlight: maxInFlight, log: c.Log,
		helloWithin: defaultHello, frameWithin: defaultFrame, idle: defaultIdle, writeWithin: defaultWrite,
		slots: make(chan struct{}, maxAllInFlight),
	}
	if d.timeout == 0 {
		d.timeout = DefaultTimeout
	}
	if d.frameSize == 0 {
		d.frameSize = DefaultMaxFrame
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.admission = gateway.Admission{
		Peers: slices.Clone(c.Allow), Max: cmp.Or(c.MaxConnections, DefaultMaxConnections),
		Counters: &d.counters.ConnCounters, Log: d.log,
	}
	return d, nil
}

// Serve serves connections of l until ctx is done, and closes l. It then answers the in-flight
// requests, disconnects from HAProxy, and returns nil within 2 s. It returns an error if l is
// closed earlier.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	s := &session{door: d, draining: make(chan struct{}), open: make(map[net.Conn]struct{})}
	// In-flight requests are decided even after ctx is done.
	deciding, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	closing, accepted := context.WithCancel(ctx)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-closing.Done()
		_ = l.Close() // ends Accept
	}()
	err := s.accept(ctx, deciding, d.admission.Listener(l))
	accepted()
	<-closed
	s.drain()
	return err
}

// session is one call of Serve.
type session struct {
	door     *Door
	draining chan struct{}
	serving  sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// accept starts a goroutine for each connection. It retries after errors such as a lack of file
// descriptors.
func (s *session) accept(ctx, deciding context.Context, l net.Listener) error {
	for {
		n, err := l.Accept()
		switch {
		case err == nil:
			s.serve(deciding, n)
		case ctx.Err() != nil:
			return nil //nolint:nilerr // Serve closed the listener because ctx is done
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("spoe: %w", err)
		default:
			s.door.warn(&s.door.logs.accept, "connections cannot be accepted", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptRetryAfter):
			}
		}
	}
}

// serve starts a goroutine that serves a connection.
func (s *session) serve(deciding context.Context, n net.Conn) {
	d := s.door
	s.mu.Lock()
	s.open[n] = struct{}{}
	s.serving.Add(1)
	s.mu.Unlock()
	go func() {
		defer func() {
			s.mu.Lock()
			delete(s.open, n)
			s.mu.Unlock()
			s.serving.Done()
		}()
		served := n
		if d.tls != nil {
			served = d.admission.Secure(n, d.tls)
		}
		newConn(d, served, func() { gateway.Settle(n) }).serve(deciding, s.draining)
	}()
}

// drain makes all connections finish, and closes those that have not finished after drainWithin.
func (s *session) drain() {
	close(s.draining)
	s.each(func(n net.Conn) { _ = n.SetReadDeadline(time.Now()) })
	done := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(drainWithin):
		s.each(func(n net.Conn) { _ = n.Close() })
		<-done
	}
}

func (s *session) each(f func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.open {
		f(n)
	}
}
