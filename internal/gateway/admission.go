package gateway

import (
	"container/list"
	"net"
	"sync"
	"sync/atomic"
)

// Admission bounds the connections of a door whose peers keep theirs open. At the bound the
// oldest of those that have not shown yet that they speak the door's protocol gives way to a new
// one, so that peers which connect and say nothing keep no gateway out. Those that have shown it
// stay, and a new connection is closed if there are no others. It is safe for concurrent use.
type Admission struct {
	most  int
	allow Peers

	mu      sync.Mutex
	open    int
	waiting list.List // of *Admitted that have not settled, the oldest first

	accepted, full, displaced, strangers atomic.Int64
}

// AdmissionStats are the counters of an [Admission] since it was made.
type AdmissionStats struct {
	Connections int64 // that are open now
	Accepted    int64 // connections that were let in
	Full        int64 // connections that were closed at once, as there were too many
	Displaced   int64 // connections that said nothing, and made room for another
	Strangers   int64 // connections that were closed at once, as their address is not allowed
}

// AdmitResult is what came of a connection.
type AdmitResult uint8

// What can come of a connection.
const (
	AdmitOK AdmitResult = iota
	AdmitFull
	AdmitStranger
)

// NewAdmission returns an admission of most connections at a time.
func NewAdmission(most int, allow Peers) *Admission { return &Admission{most: most, allow: allow} }

// Admit lets a connection in. If it may not stay, Admit closes it and returns nil and why.
func (a *Admission) Admit(n net.Conn) (*Admitted, AdmitResult) {
	if !a.allow.Allow(n.RemoteAddr()) {
		a.strangers.Add(1)
		_ = n.Close()
		return nil, AdmitStranger
	}
	c := &Admitted{Conn: n, of: a}
	a.mu.Lock()
	var oldest *Admitted
	if a.open >= a.most {
		first := a.waiting.Front()
		if first == nil {
			a.mu.Unlock()
			a.full.Add(1)
			_ = n.Close()
			return nil, AdmitFull
		}
		oldest = first.Value.(*Admitted)
		a.remove(oldest)
		a.displaced.Add(1)
	}
	a.open++
	c.isOpen = true
	c.place = a.waiting.PushBack(c)
	a.mu.Unlock()
	a.accepted.Add(1)
	if oldest != nil {
		_ = oldest.Conn.Close() // its reader learns it
	}
	return c, AdmitOK
}

// remove takes a connection out. The caller holds mu.
func (a *Admission) remove(c *Admitted) {
	if !c.isOpen {
		return
	}
	c.isOpen = false
	a.open--
	a.settle(c)
}

// settle takes a connection out of those that wait. The caller holds mu.
func (a *Admission) settle(c *Admitted) {
	if c.place != nil {
		a.waiting.Remove(c.place)
		c.place = nil
	}
}

// Stats returns the counters.
func (a *Admission) Stats() AdmissionStats {
	a.mu.Lock()
	open := a.open
	a.mu.Unlock()
	return AdmissionStats{
		Connections: int64(open), Accepted: a.accepted.Load(), Full: a.full.Load(),
		Displaced: a.displaced.Load(), Strangers: a.strangers.Load(),
	}
}

// Admitted is a connection that counts until it is closed.
type Admitted struct {
	net.Conn
	of *Admission

	// of.mu guards the rest.
	isOpen bool
	place  *list.Element // among those that wait; nil once it has settled
}

// Settle says that the peer speaks the door's protocol: the connection does not give way any
// more.
func (c *Admitted) Settle() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.settle(c)
}

// Close closes the connection.
func (c *Admitted) Close() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
