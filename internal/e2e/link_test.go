package e2e

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// tcpLink forwards connections to a server until the test cuts it.
type tcpLink struct {
	listener net.Listener
	target   string
	work     sync.WaitGroup

	mu    sync.Mutex
	state linkState
	ends  map[net.Conn]struct{} // both ends of every connection
	holes []*atomic.Bool        // one for each connection: it forwards nothing, ever again
}

type linkState int

const (
	up     linkState = iota
	cut              // connections break, and new ones break at once
	silent           // connections come about and stay, and nothing comes through
)

func newTCPLink(t *testing.T, target string) *tcpLink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &tcpLink{listener: listener, target: target, ends: make(map[net.Conn]struct{})}
	l.work.Go(l.accept)
	t.Cleanup(func() {
		listener.Close()
		l.set(cut)
		l.work.Wait()
	})
	return l
}

func (l *tcpLink) addr() string { return l.listener.Addr().String() }

// set changes the state. A connection that has been silent is dead for good, as
// when a firewall has forgotten it: only new ones come through.
func (l *tcpLink) set(state linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
	switch state {
	case cut:
		for end := range l.ends {
			end.Close()
		}
	case silent:
		for _, hole := range l.holes {
			hole.Store(true)
		}
	case up:
	}
}

func (l *tcpLink) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.connect(conn)
	}
}

func (l *tcpLink) connect(client net.Conn) {
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		client.Close()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == cut {
		client.Close()
		server.Close()
		return
	}
	hole := new(atomic.Bool)
	hole.Store(l.state == silent)
	l.holes = append(l.holes, hole)
	l.ends[client], l.ends[server] = struct{}{}, struct{}{}
	l.work.Go(func() { l.forward(server, client, hole) })
	l.work.Go(func() { l.forward(client, server, hole) })
}

func (l *tcpLink) forward(to, from net.Conn, hole *atomic.Bool) {
	defer func() {
		to.Close()
		from.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.ends, to)
		delete(l.ends, from)
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
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

// udpLink forwards packets one way until the test cuts it.
type udpLink struct {
	conn net.PacketConn
	cut  atomic.Bool
}

func newUDPLink(t *testing.T, target string) *udpLink {
	t.Helper()
	return newUDPLinkThrough(t, target, func(packet []byte, send func([]byte)) { send(packet) })
}

// newUDPLinkThrough has each packet go through pass, which may send it, once or several
// times, then or later. The packet is valid until pass returns.
func newUDPLinkThrough(t *testing.T, target string, pass func(packet []byte, send func([]byte))) *udpLink {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("udp", target)
	if err != nil {
		t.Fatal(err)
	}
	l := &udpLink{conn: conn}
	var work sync.WaitGroup
	work.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if !l.cut.Load() {
				pass(buf[:n], func(packet []byte) { _, _ = out.Write(packet) }) // UDP: it may be lost
			}
		}
	})
	t.Cleanup(func() {
		conn.Close()
		work.Wait()
		out.Close()
	})
	return l
}

func (l *udpLink) addr() string { return l.conn.LocalAddr().String() }
