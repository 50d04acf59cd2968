package testenv

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Relay forwards TCP connections to a server, and does to them what a network does when
// it fails. It is safe for concurrent use.
type Relay struct {
	listener net.Listener
	target   string
	delay    atomic.Int64
	lose     atomic.Bool
	work     sync.WaitGroup

	mu    sync.Mutex
	state LinkState
	ends  map[net.Conn]struct{} // both ends of every connection
	holes []*atomic.Bool        // one for each connection: it forwards nothing, ever again
}

// LinkState is what a [Relay] does with connections.
type LinkState int

// The states of a link.
const (
	LinkUp     LinkState = iota
	LinkCut              // connections break, and new ones break at once
	LinkSilent           // connections come about and stay, and nothing comes through
)

// NewRelay returns a relay to a server, which is up and ends with the test.
func NewRelay(t testing.TB, target string) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: listener, target: target, ends: make(map[net.Conn]struct{})}
	r.work.Go(r.accept)
	t.Cleanup(func() {
		listener.Close()
		r.Set(LinkCut)
		r.work.Wait()
	})
	return r
}

// Addr returns where the relay listens.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Set changes the state. A connection that has been silent is dead for good, as
// when a firewall has forgotten it: only new ones come through.
func (r *Relay) Set(state LinkState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
	switch state {
	case LinkCut:
		for end := range r.ends {
			end.Close()
		}
	case LinkSilent:
		for _, hole := range r.holes {
			hole.Store(true)
		}
	case LinkUp:
	}
}

// Delay holds back each read of the server's answers for d from now on.
func (r *Relay) Delay(d time.Duration) { r.delay.Store(int64(d)) }

// LoseAnswer breaks the connection on which the server's next answer comes, which is
// lost.
func (r *Relay) LoseAnswer() { r.lose.Store(true) }

func (r *Relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.connect(conn)
	}
}

func (r *Relay) connect(client net.Conn) {
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		client.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == LinkCut {
		client.Close()
		server.Close()
		return
	}
	hole := new(atomic.Bool)
	hole.Store(r.state == LinkSilent)
	r.holes = append(r.holes, hole)
	r.ends[client], r.ends[server] = struct{}{}, struct{}{}
	r.work.Go(func() { r.forward(server, client, hole, false) })
	r.work.Go(func() { r.forward(client, server, hole, true) })
}

func (r *Relay) forward(to, from net.Conn, hole *atomic.Bool, answers bool) {
	defer func() {
		to.Close()
		from.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.ends, to)
		delete(r.ends, from)
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if answers && n > 0 {
			if r.lose.CompareAndSwap(true, false) {
				return
			}
			time.Sleep(time.Duration(r.delay.Load()))
		}
		if !hole.Load() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
