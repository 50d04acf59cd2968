package gateway

import (
	"container/list"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/peer"
)

// ConnCounters count the connections of a door. N is int64 or [atomic.Int64].
type ConnCounters[N any] struct {
	Connections N // open now
	Accepted    N // accepted in total
	Full        N // closed on accept: at the maximum, with no connection to displace
	Displaced   N // closed to make room for a new one
	Strangers   N // closed on accept: the address is not allowed
	NoTLS       N // closed because the TLS handshake failed, as with a wrong certificate
}

// Admission bounds the connections of a door. A connection settles when its peer has spoken the
// door's protocol. At the maximum, one of the peer that has most is closed to make room for a new
// one: the oldest that has not settled, else, for a peer that has fewer, the newest. So a peer that connects and sends nothing, or that holds
// many connections, cannot lock a gateway out. Otherwise the new one is closed. The fields must
// not change while it is used.
type Admission struct {
	Peers    Peers
	Max      int // maximum number of open connections; zero means no limit
	Counters *ConnCounters[atomic.Int64]
	Log      *slog.Logger

	full, strangers, noTLS loglimit.Limit

	mu   sync.Mutex
	open list.List // of *admitted, oldest first
}

// admissionLog limits the log lines of each reason to close a connection.
var admissionLog = loglimit.Rate{Burst: 2, Every: time.Minute}

// Listener returns a listener that closes connections that are not admitted. It does not delay
// Accept instead: connections would stay in the kernel's queue, where a gateway takes them for
// open and waits for answers.
func (a *Admission) Listener(l net.Listener) net.Listener { return &admitting{l, a} }

type admitting struct {
	net.Listener
	admission *Admission
}

// Accept returns the next admitted connection.
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

// admit counts conn and returns it wrapped. It returns nil if conn is not admitted.
func (a *Admission) admit(conn net.Conn) *admitted {
	c, from := a.Counters, conn.RemoteAddr()
	if !a.Peers.Allow(from) {
		c.Strangers.Add(1)
		a.strangers.Warn(admissionLog, a.Log, "closed a connection: the address is not allowed", "address", from.String())
		return nil
	}
	in := &admitted{Conn: conn, of: a, peer: peer.Of(conn)}
	a.mu.Lock()
	if open := c.Connections.Add(1); a.Max > 0 && open > int64(a.Max) && !a.displace(in.peer) {
		a.mu.Unlock()
		c.Connections.Add(-1)
		c.Full.Add(1)
		a.full.Warn(admissionLog, a.Log, "closed a connection: too many are open", "max", a.Max)
		return nil
	}
	in.place = a.open.PushBack(in)
	a.mu.Unlock()
	c.Accepted.Add(1)
	return in
}

// displace closes a connection for one of newcomer, and reports whether there was one to close.
// The caller holds mu.
func (a *Admission) displace(newcomer peer.Peer) bool {
	places := make(peer.Places)
	for e := a.open.Front(); e != nil; e = e.Next() {
		places[e.Value.(*admitted).peer]++
	}
	gives := places.Gives(newcomer)
	var closed, newest *admitted
	for e := a.open.Front(); e != nil; e = e.Next() {
		c := e.Value.(*admitted)
		if !gives(c.peer) {
			continue
		}
		if newest = c; closed == nil && !c.settled {
			closed = c
		}
	}
	if closed == nil {
		if newest == nil || !places.Yields(newest.peer, newcomer) {
			return false
		}
		closed = newest
	}
	closed.leave()
	a.Counters.Displaced.Add(1)
	_ = closed.Conn.Close() // makes its reader return
	return true
}

// Settle records that the peer of conn speaks the door's protocol. Settle does nothing if conn is
// not from an Admission.
func Settle(conn net.Conn) {
	if c, ok := conn.(*admitted); ok {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.settled = true
	}
}

// admitted is a connection that is counted as open until it is closed.
type admitted struct {
	net.Conn
	of   *Admission
	peer peer.Peer

	// of.mu guards the rest.
	place   *list.Element // in of.open; nil once the connection is closed
	settled bool
}

// leave removes the connection from the count. Only the first call has an effect. The caller
// holds of.mu.
func (c *admitted) leave() {
	if c.place != nil {
		c.of.open.Remove(c.place)
		c.place = nil
		c.of.Counters.Connections.Add(-1)
	}
}

// Close closes the connection.
func (c *admitted) Close() error {
	c.of.mu.Lock()
	c.leave()
	c.of.mu.Unlock()
	return c.Conn.Close()
}
