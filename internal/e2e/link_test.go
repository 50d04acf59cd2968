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
