package spoe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/loglimit"
)

const (
	// defaultTimeout is shorter than the 50 ms in HAProxy's configuration in deploy/gateways.
	defaultTimeout = 40 * time.Millisecond
	// defaultMaxConnections is far more than HAProxy needs: with pipelining, a few for each
	// of its threads.
	defaultMaxConnections = 1024
	// defaultMaxFrame is larger than HAProxy's default of 16,380, which follows from its
	// tune.bufsize. HAProxy can choose a smaller one in the handshake.
	defaultMaxFrame = 64 << 10

	maxTimeout       = 10 * time.Second // longest timeout in a message
	maxInFlight      = 64               // NOTIFY frames of one connection
	maxAllInFlight   = 1024             // NOTIFY frames of all connections
	drainWithin      = 2 * time.Second
	defaultHello     = 5 * time.Second
	defaultFrame     = 5 * time.Second
	defaultIdle      = 10 * time.Minute // HAProxy's own timeout is set in its configuration
	defaultWrite     = 5 * time.Second
	acceptRetryAfter = 50 * time.Millisecond
)

// Door serves HAProxy. Without Tickets, requests cost nothing and hold no permits.
type Door struct {
	gateway.DoorConfig
	*gateway.Tally
	conns     *connlimit.Limiter
	frameSize int // maximum, in bytes
	inFlight  int

	helloWithin, frameWithin, idle, writeWithin time.Duration

	slots        chan struct{} // one element for each in-flight NOTIFY of all connections
	healthchecks atomic.Int64  // connections that were health checks
	accepting    loglimit.Limit
}

// New returns a door. It starts nothing; see [Door.Serve].
func New(c gateway.DoorConfig) (*Door, error) {
	if err := c.SetDefaults(defaultTimeout, defaultMaxConnections, false); err != nil {
		return nil, err
	}
	return &Door{
		DoorConfig: c, conns: c.Limiter(true), frameSize: defaultMaxFrame, inFlight: maxInFlight,
		Tally: gateway.NewTally(c.Log,
			[]gateway.Reason{gateway.Incomplete, gateway.UnknownMessage, gateway.NoTicket, gateway.Cut, gateway.Invalid, gateway.Panicked},
			[]gateway.Reason{gateway.Invalid, gateway.TooLarge, gateway.Fragmented, gateway.Handshake, gateway.Slow}),
		helloWithin: defaultHello, frameWithin: defaultFrame, idle: defaultIdle, writeWithin: defaultWrite,
		slots: make(chan struct{}, maxAllInFlight),
	}, nil
}

// Figures implements [gateway.Door].
func (d *Door) Figures() gateway.Figures { return d.Tally.Figures(d.conns.Stats()) }

// Serve serves connections of l until ctx is done, and closes l. It then answers the in-flight
// requests, disconnects from HAProxy, and returns nil within 2 s. It returns an error if l is
// closed earlier.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	l = d.conns.Listener(l)
	s := &session{door: d, draining: make(chan struct{}), open: make(map[*connlimit.Conn]struct{})}
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
	err := s.accept(ctx, deciding, l)
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
	open map[*connlimit.Conn]struct{}
}

// accept starts a goroutine for each connection. It retries after errors such as a lack of file
// descriptors.
func (s *session) accept(ctx, deciding context.Context, l net.Listener) error {
	for {
		n, err := l.Accept()
		switch {
		case err == nil:
			s.serve(deciding, n.(*connlimit.Conn))
		case ctx.Err() != nil:
			return nil //nolint:nilerr // Serve closed the listener because ctx is done
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("spoe: %w", err)
		default:
			s.door.accepting.Warn(loglimit.LineRate{Burst: 1, Every: time.Minute}, s.door.Log, "connections cannot be accepted", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptRetryAfter):
			}
		}
	}
}

// serve starts a goroutine that serves a connection.
func (s *session) serve(deciding context.Context, n *connlimit.Conn) {
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
		newConn(s.door, n).serve(deciding, s.draining)
	}()
}

// drain makes all connections finish, and closes those that have not finished after drainWithin.
func (s *session) drain() {
	close(s.draining)
	s.each(func(n *connlimit.Conn) { _ = n.SetReadDeadline(time.Now()) })
	done := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(drainWithin):
		s.each((*connlimit.Conn).Abort)
		<-done
	}
}

func (s *session) each(f func(*connlimit.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.open {
		f(n)
	}
}
