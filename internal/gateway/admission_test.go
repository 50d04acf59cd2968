package gateway

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/countset"
)

// A door has as many connections as it may, and counts each. One that is too many takes the place
// of another that has said nothing, or is closed at once.
func TestAdmission(t *testing.T) {
	for name, test := range map[string]struct {
		peers Peers
		most  int
		speak bool // the connections settle
		stay  int  // of 5 connections
		want  ConnCounters[int64]
		text  string
	}{
		"no bound":  {nil, 0, false, 5, ConnCounters[int64]{Connections: 5, Accepted: 5}, ""},
		"two":       {nil, 2, true, 2, ConnCounters[int64]{Connections: 2, Accepted: 2, Full: 3}, "too many"},
		"silent":    {nil, 2, false, 5, ConnCounters[int64]{Connections: 2, Accepted: 5, Displaced: 3}, ""},
		"strangers": {Peers{netip.MustParsePrefix("10.0.0.0/8")}, 0, false, 0, ConnCounters[int64]{Strangers: 5}, "not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			var counters ConnCounters[atomic.Int64]
			a := Admission{Peers: test.peers, Max: test.most, Counters: &counters, Log: slog.New(slog.NewTextHandler(&log, nil))}
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := a.Listener(inner)
			stayed := make(chan []net.Conn)
			go func() {
				var all []net.Conn
				for {
					c, err := l.Accept()
					if err != nil {
						stayed <- all
						return
					}
					all = append(all, c)
					if test.speak {
						Settle(c)
					}
					_, _ = c.Write([]byte{1})
				}
			}()
			stay := 0
			for range 5 {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				if n, _ := c.Read(make([]byte, 1)); n == 1 {
					stay++
				}
			}
			_ = l.Close()
			conns := <-stayed
			got := countset.Load[ConnCounters[int64]](&counters)
			if stay != test.stay || len(conns) != test.stay || got != test.want {
				t.Errorf("%d stay and %d were accepted, want %d; %+v, want %+v", stay, len(conns), test.stay, got, test.want)
			}
			if text := log.String(); (text == "") != (test.text == "") || !strings.Contains(text, test.text) || strings.Count(text, "\n") > admissionLog.Burst {
				t.Errorf("logged %q, want %q twice at most", text, test.text)
			}
			for _, c := range conns {
				_, _ = c.Close(), c.Close() // a second one counts no further
			}
			if n := counters.Connections.Load(); n != 0 {
				t.Errorf("%d connections are open when all are closed", n)
			}
		})
	}
}

// At the maximum, the oldest connection that has not settled is closed, and never a settled one.
func TestTheOldestSilentConnectionGivesWay(t *testing.T) {
	var counters ConnCounters[atomic.Int64]
	a := Admission{Max: 2, Counters: &counters, Log: slog.New(slog.DiscardHandler)}
	admit := func() *admitted {
		near, far := net.Pipe()
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		return a.admit(near)
	}
	isClosed := func(c *admitted) bool { return c.SetDeadline(time.Time{}) != nil }
	speaks := admit()
	Settle(speaks)
	first, second := admit(), admit()
	if !isClosed(first) || isClosed(second) || isClosed(speaks) {
		t.Errorf("closed: %v, %v, %v; want the first that says nothing alone", isClosed(first), isClosed(second), isClosed(speaks))
	}
	Settle(first) // too late
	_ = first.Close()
	Settle(second)
	if admit() != nil {
		t.Error("a third connection beside two that speak")
	}
	_ = second.Close()
	third := admit()
	if third == nil {
		t.Fatal("no room after one was closed")
	}
	_, _ = third.Close(), speaks.Close()
	want := ConnCounters[int64]{Accepted: 4, Full: 1, Displaced: 1}
	if got := countset.Load[ConnCounters[int64]](&counters); got != want || a.open.Len() != 0 {
		t.Errorf("%+v, want %+v; %d are open", got, want, a.open.Len())
	}
}

// A peer that holds all connections, silent or not, gives up some for another peer, which never
// gets more than it has.
func TestNoPeerHoldsAllConnections(t *testing.T) {
	for _, speak := range []bool{false, true} {
		var counters ConnCounters[atomic.Int64]
		a := Admission{Max: 8, Counters: &counters, Log: slog.New(slog.DiscardHandler)}
		admit := func(address string) *admitted {
			near, far := net.Pipe()
			t.Cleanup(func() { _, _ = near.Close(), far.Close() })
			c := a.admit(addressed{near, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))})
			if c != nil && speak {
				Settle(c)
			}
			return c
		}
		for range 20 {
			admit("203.0.113.9:1")
		}
		var gateway []*admitted
		for range 4 {
			c := admit("10.0.0.1:1")
			if c == nil {
				t.Fatalf("settled %v: a gateway with %d connections is locked out", speak, len(gateway))
			}
			Settle(c)
			gateway = append(gateway, c)
		}
		if speak && admit("10.0.0.1:1") != nil {
			t.Error("a fifth connection of eight")
		}
		for range 20 {
			admit("203.0.113.9:1")
		}
		for i, c := range gateway {
			if c.SetDeadline(time.Time{}) != nil {
				t.Errorf("settled %v: connection %d of the gateway was closed", speak, i)
			}
		}
	}
}

// addressed is a connection of a peer at an address.
type addressed struct {
	net.Conn
	from net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.from }
