package connlimit

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A limiter accepts as many connections as allowed, and counts each. One above that takes the
// place of an idle one, or is closed at once.
func TestLimiter(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		use    bool // the connections are in use
		stay   int  // of 5 connections
		want   Stats
		text   string
	}{
		"no bound":  {Config{}, false, 5, Stats{Connections: 5}, ""},
		"two":       {Config{Max: 2, CloseUsed: true}, true, 2, Stats{Connections: 2, Used: 2, Full: 3}, "as many"},
		"reserve":   {Config{Max: 2, Reserve: 1}, true, 3, Stats{Connections: 3, Used: 3, Full: 2}, "as many"},
		"idle":      {Config{Max: 2, CloseUsed: true}, false, 5, Stats{Connections: 2, Displaced: 3}, ""},
		"strangers": {Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, false, 0, Stats{Strangers: 5}, "not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			test.config.Log = slog.New(slog.NewTextHandler(&log, nil))
			limiter := New(test.config)
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := limiter.Listener(inner)
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
					c.(*Conn).SetUsed(test.use)
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
			if got := limiter.Stats(); stay != test.stay || len(conns) != test.stay || got != test.want {
				t.Errorf("%d stay and %d were accepted, want %d; %+v, want %+v", stay, len(conns), test.stay, got, test.want)
			}
			if text := log.String(); (text == "") != (test.text == "") || !strings.Contains(text, test.text) || strings.Count(text, "\n") > logRate.Burst {
				t.Errorf("logged %q, want %q twice at most", text, test.text)
			}
			for _, c := range conns {
				_, _ = c.Close(), c.Close() // a second one counts no further
			}
			if n := limiter.Stats().Connections; n != 0 {
				t.Errorf("%d connections are open when all are closed", n)
			}
		})
	}
}

// pipe is a connection of a peer at an address.
type pipe struct {
	net.Conn
	from netip.Addr
}

func (p pipe) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.from, 1)) }

// admit offers a connection of a peer to a limiter.
func admit(t testing.TB, l *Limiter, from string) *Conn {
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return l.admit(pipe{near, netip.MustParseAddr(from)}, false)
}

func isClosed(c *Conn) bool { return c.SetDeadline(time.Time{}) != nil }

// The connection that has been idle longest is closed to make room, never one in use.
func TestTheIdlestConnectionGivesWay(t *testing.T) {
	for _, closeUsed := range []bool{false, true} {
		l := New(Config{Max: 3, CloseUsed: closeUsed})
		used, first, second := admit(t, l, "10.0.0.1"), admit(t, l, "10.0.0.1"), admit(t, l, "10.0.0.1")
		used.SetUsed(true)
		first.SetUsed(true)
		first.SetUsed(false) // now second has been idle longer
		third := admit(t, l, "10.0.0.1")
		if isClosed(used) || isClosed(first) || !isClosed(second) || isClosed(third) {
			t.Errorf("closed: %v, %v, %v, %v; want the third alone", isClosed(used), isClosed(first), isClosed(second), isClosed(third))
		}
		second.SetUsed(true) // too late
		_ = second.Close()
		first.SetUsed(true)
		third.SetUsed(true)
		if admit(t, l, "10.0.0.1") != nil {
			t.Error("a fourth connection beside three in use")
		}
		_ = third.Close()
		if admit(t, l, "10.0.0.1") == nil {
			t.Fatal("no room after one was closed")
		}
		if got, want := l.Stats(), (Stats{Connections: 3, Used: 2, Full: 1, Displaced: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// A peer that holds all connections gives up some for another peer, if they are idle or if
// Config.CloseUsed is set. The other never gets more than it has.
func TestNoPeerHoldsAllConnections(t *testing.T) {
	for _, use := range []bool{false, true} {
		l := New(Config{Max: 8, CloseUsed: true})
		for range 20 {
			if c := admit(t, l, "203.0.113.9"); c != nil {
				c.SetUsed(use)
			}
		}
		var gateway []*Conn
		for range 4 {
			c := admit(t, l, "10.0.0.1")
			if c == nil {
				t.Fatalf("used %v: a gateway with %d connections is locked out", use, len(gateway))
			}
			c.SetUsed(true)
			gateway = append(gateway, c)
		}
		if use && admit(t, l, "10.0.0.1") != nil {
			t.Error("a fifth connection of eight")
		}
		for range 20 {
			admit(t, l, "203.0.113.9")
		}
		for i, c := range gateway {
			if isClosed(c) {
				t.Errorf("used %v: connection %d of the gateway was closed", use, i)
			}
		}
	}
}

// Whatever peers do, a limiter never exceeds its number of connections and closes none in use
// without Config.CloseUsed. With a single peer it refuses none while another is idle.
func TestLimiterBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		config := Config{
			Max: rapid.IntRange(1, 6).Draw(rt, "max"), Reserve: rapid.IntRange(0, 2).Draw(rt, "reserve"), CloseUsed: rapid.Bool().Draw(rt, "closeUsed"),
		}
		l := New(config)
		peers := rapid.IntRange(1, 3).Draw(rt, "peers")
		var all []*Conn
		for range 60 {
			switch i := rapid.IntRange(0, 5).Draw(rt, "step"); {
			case i < 3 || len(all) == 0:
				from := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, peers).Draw(rt, "peer"))}).String()
				was := l.Stats()
				c := admit(t, l, from)
				now := l.Stats()
				if now.Connections > int64(config.Max+config.Reserve) {
					rt.Fatalf("%d connections, of %d and %d", now.Connections, config.Max, config.Reserve)
				}
				hadIdle := was.Connections > was.Used
				if (c == nil || c.Reserved) && hadIdle && (peers == 1 || !config.CloseUsed) {
					rt.Fatalf("refused, or accepted on the reserve, beside an idle connection: %+v", was)
				}
				if !config.CloseUsed && now.Used < was.Used {
					rt.Fatalf("a connection in use was closed: %+v, then %+v", was, now)
				}
				if c != nil {
					all = append(all, c)
				}
			case i < 5:
				rapid.SampledFrom(all).Draw(rt, "conn").SetUsed(i == 3)
			default:
				_ = rapid.SampledFrom(all).Draw(rt, "conn").Close()
			}
		}
		for _, c := range all {
			_ = c.Close()
		}
		if s := l.Stats(); s.Connections != 0 {
			rt.Fatalf("%d connections are open when all are closed", s.Connections)
		}
	})
}

func TestAllow(t *testing.T) {
	some := New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fe80::/64")}})
	for addr, want := range map[string]bool{
		"10.1.2.3:4": true, "[::ffff:10.1.2.3]:4": true, "[fe80::1%eth0]:4": true, "11.1.2.3:4": false, "[fe80:1::1]:4": false,
	} {
		if got := some.allows(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
	if !some.allows(&net.UnixAddr{Name: "@"}) || !New(Config{}).allows(&net.TCPAddr{IP: net.IPv4(1, 2, 3, 4)}) {
		t.Error("a Unix socket, or all networks, are refused")
	}
}

// Peers that disconnect before the TLS handshake are not counted: probes that check whether a
// port is open do so.
func TestHandshakeFailed(t *testing.T) {
	log := new(testenv.LogBuffer)
	l := New(Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	from := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, &net.OpError{Op: "read", Err: net.ErrClosed},
	} {
		l.HandshakeFailed(from, err)
	}
	if got := l.Stats().NoTLS; got != 0 || log.String() != "" {
		t.Errorf("%d connections are counted; the log:\n%s", got, log)
	}
	l.HandshakeFailed(from, errors.New("tls: client didn't provide a certificate"))
	l.HandshakeFailed(from, tls.AlertError(42))
	if got := l.Stats().NoTLS; got != 2 {
		t.Errorf("%d connections are counted, want 2", got)
	}
}
