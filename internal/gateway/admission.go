package gateway

import (
	"container/list"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// ConnCounters count the connections of a door. N is int64 or [atomic.Int64].
type ConnCounters[N any] struct {
	Connections N // that are open now
	Accepted    N // that have ever been
	Full        N // that were closed at once, since there were too many
	Displaced   N // that said nothing, and made room for another
	Strangers   N // that were closed at once, since their address may not connect
	NoTLS       N // that ended before TLS was agreed on, as with a wrong certificate
}

// Admission decides which connections a door has. At the bound the oldest of those that have not
// settled gives way to a new one, so that peers which connect and say nothing keep no gateway
// out; if all have, the new one is closed. Its fields must not change while it is used.
type Admission struct {
	Peers    Peers
	Max      int // how many may be open at a time; 0 means no bound
	Counters *ConnCounters[atomic.Int64]
	Log      *slog.Logger

	full, strangers, noTLS loglimit.Limit

	mu      sync.Mutex
	waiting list.List // of *admitted that have not settled, the oldest first
}

// admissionLog is how often each reason to close connections is logged.
var admissionLog = loglimit.Rate{Burst: 2, Every: time.Minute}

// Listener returns a listener that closes at once what may not stay. A bound that has
// connections wait in place of that would leave them to the kernel's queue, where a gateway
// takes them for open and waits for answers.
func (a *Admission) Listener(l net.Listener) net.Listener { return &admitting{l, a} }

type admitting struct {
	net.Listener
	admission *Admission
}

// Accept returns the next connection that may stay.
func (l *admitting) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admission.admit(conn); c != nil {
			return c, nil
		}
		_ = conn.Close()
	}
}

// admit returns a connection that may stay, and counts it, or nil.
func (a *Admission) admit(conn net.Conn) *admitted {
	c, from := a.Counters, conn.RemoteAddr()
	if !a.Peers.Allow(from) {
		c.Strangers.Add(1)
		a.strangers.Warn(admissionLog, a.Log, "closed a connection from an address that may not connect", "address", from.String())
		return nil
	}
	in := &admitted{Conn: conn, of: a}
	a.mu.Lock()
	if open := c.Connections.Add(1); a.Max > 0 && open > int64(a.Max) && !a.displace() {
		a.mu.Unlock()
		c.Connections.Add(-1)
		c.Full.Add(1)
		a.full.Warn(admissionLog, a.Log, "closed a connection: there are too many", "most", a.Max)
		return nil
	}
	in.place = a.waiting.PushBack(in)
	a.mu.Unlock()
	c.Accepted.Add(1)
	return in
}

// displace closes the oldest connection that has not settled, and reports whether there was one.
// The caller holds mu.
func (a *Admission) displace() bool {
	front := a.waiting.Front()
	if front == nil {
		return false
	}
	oldest := front.Value.(*admitted)
	oldest.leave()
	a.Counters.Displaced.Add(1)
	_ = oldest.Conn.Close() // its reader learns it
	return true
}

// Settle says that the peer of a connection, which an [Admission] has let in, speaks the door's
// protocol: it does not give way any more.
func Settle(conn net.Conn) {
	if c, ok := conn.(*admitted); ok {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.settle()
	}
}

// admitted is a connection that counts until it is closed.
type admitted struct {
	net.Conn
	of *Admission

	// of.mu guards the rest.
	place *list.Element // among those that wait; nil once it has settled
	left  bool
}

// leave has the connection count no more. The caller holds of.mu.
func (c *admitted) leave() {
	if !c.left {
		c.left = true
		c.of.Counters.Connections.Add(-1)
		c.settle()
	}
}

// settle takes the connection out of those that wait. The caller holds of.mu.
func (c *admitted) settle() {
	if c.place != nil {
		c.of.waiting.Remove(c.place)
		c.place = nil
	}
}

// Close closes the connection.
func (c *admitted) Close() error {
	c.of.mu.Lock()
	c.leave()
	c.of.mu.Unlock()
	return c.Conn.Close()
}
