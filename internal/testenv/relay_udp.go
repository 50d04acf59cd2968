package testenv

import (
	"bytes"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// UDPRelay forwards packets one way.
type UDPRelay struct {
	conn  net.PacketConn
	isCut atomic.Bool
}

// NewUDPRelay returns a relay to all targets, which ends with the test. Each packet goes through
// pass, which may send it, once or several times, immediately or later. A nil pass sends each
// packet unchanged. The packet is valid until pass returns.
func NewUDPRelay(t testing.TB, pass func(packet []byte, send func([]byte)), targets ...string) *UDPRelay {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// A connected socket would drop one packet for each that finds no listener at the target.
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
			_, _ = out.WriteTo(packet, addr) // the packet may be lost, as UDP allows
		}
	}
	if pass == nil {
		pass = func(packet []byte, send func([]byte)) { send(packet) }
	}
	r := &UDPRelay{conn: conn}
	var work sync.WaitGroup
	work.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if !r.isCut.Load() {
				pass(buf[:n], send)
			}
		}
	})
	t.Cleanup(func() {
		conn.Close()
		work.Wait()
		out.Close()
	})
	return r
}

// Addr returns the address on which the relay listens.
func (r *UDPRelay) Addr() string { return r.conn.LocalAddr().String() }

// SetCut makes the relay drop all packets, or forward them again.
func (r *UDPRelay) SetCut(cut bool) { r.isCut.Store(cut) }

// metaTimes matches the times of the sender's clock in a packet's meta line, in Unix nanoseconds:
// the beginning of its counts and the time of sending.
var metaTimes = regexp.MustCompile(`,[tw]:(\d+)`)

// ShiftClock returns a packet of counts with its times shifted as if the sender's clock were
// ahead by offset.
func ShiftClock(packet []byte, offset time.Duration) []byte {
	meta, lines, _ := bytes.Cut(packet, []byte("\n"))
	if offset == 0 || !bytes.HasPrefix(meta, []byte("hotparam.meta:1|c|#")) {
		return packet
	}
	meta = metaTimes.ReplaceAllFunc(meta, func(field []byte) []byte {
		sent, err := strconv.ParseInt(string(field[len(",t:"):]), 10, 64)
		if err != nil {
			return field
		}
		return strconv.AppendInt(bytes.Clone(field[:len(",t:")]), sent+int64(offset), 10)
	})
	return slices.Concat(meta, []byte("\n"), lines)
}
