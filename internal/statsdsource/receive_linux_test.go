package statsdsource

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// Packets that waited in the socket have the time of their arrival, and are returned in order and
// whole.
func TestReceiverTellsWhenPacketsCame(t *testing.T) {
	l, err := listenStatsD(t.Context(), []string{"127.0.0.1:0"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	s := l.packets[0]
	conn, err := net.Dial("udp", s.socket.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for stamped := false; !stamped; { // the system begins to stamp packets a while after it is asked to
		_, _ = conn.Write([]byte("x"))
		time.Sleep(5 * time.Millisecond)
		if _, err := s.receiver.read(); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		_, _, when := s.receiver.message(0, now, s.opened)
		stamped = now.Sub(when) > 2*time.Millisecond
	}
	set := time.Now().Add(time.Hour) // the clock, since the packet came
	if _, _, when := s.receiver.message(0, set, set.Add(-5*time.Millisecond)); !when.Equal(set.Add(-5 * time.Millisecond)) {
		t.Errorf("a packet is said to have waited for %v in a socket that was empty 5ms ago", set.Sub(when))
	}
	const packets = readBatch + 6
	began := time.Now()
	for i := range packets {
		p := fmt.Appendf(nil, "%d", i)
		if i == 3 {
			p = append(p, make([]byte, 60_000)...)
		}
		if _, err := conn.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	sent := time.Now()
	time.Sleep(30 * time.Millisecond) // they wait in a real socket
	next := 0
	for next < packets {
		n, err := s.receiver.read()
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		for i := range n {
			p, _, when := s.receiver.message(i, now, s.opened)
			var k int
			if _, err := fmt.Sscan(string(p[:min(len(p), 2)]), &k); err != nil && next != 3 || next != 3 && k != next {
				t.Errorf("packet %d is %.5q", next, p)
			}
			if next == 3 && len(p) != 60_001 {
				t.Errorf("the long packet has %d bytes", len(p))
			}
			if when.Before(began.Add(-time.Millisecond)) || when.After(sent.Add(5*time.Millisecond)) {
				t.Errorf("packet %d came %v after the first was sent, and all were within %v", next, when.Sub(began), sent.Sub(began))
			}
			next++
		}
	}
}

func TestReceiverDoesNotAllocate(t *testing.T) {
	l, err := listenStatsD(t.Context(), []string{"127.0.0.1:0"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	s := l.packets[0]
	conn, err := net.Dial("udp", s.socket.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	packet := []byte("x")
	if n := testing.AllocsPerRun(50, func() {
		_, _ = conn.Write(packet)
		if n, err := s.receiver.read(); n != 1 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
}
