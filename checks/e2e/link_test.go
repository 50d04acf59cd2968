package e2e

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// udpLink forwards packets one way until the test cuts it.
type udpLink struct {
	conn net.PacketConn
	cut  atomic.Bool
}

func newUDPLink(t *testing.T, target string) *udpLink {
	t.Helper()
	return newUDPLinkThrough(t, func(packet []byte, send func([]byte)) { send(packet) }, target)
}

// newUDPLinkThrough has each packet go through pass, which may send it, once or several
// times, then or later, to all targets. The packet is valid until pass returns.
func newUDPLinkThrough(t *testing.T, pass func(packet []byte, send func([]byte)), targets ...string) *udpLink {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// A connected socket would drop a packet for each that found no one at the target.
	out, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addrs := make([]*net.UDPAddr, len(targets))
	for i, target := range targets {
		if addrs[i], err = net.ResolveUDPAddr("udp", target); err != nil {
			t.Fatal(err)
		}
	}
	send := func(packet []byte) {
		for _, addr := range addrs {
			_, _ = out.WriteTo(packet, addr) // UDP: it may be lost
		}
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
				pass(buf[:n], send)
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
