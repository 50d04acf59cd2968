package statsdsink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

// fakeConn is a connection that accepts what take returns for each write. With a nil take it
// accepts everything.
type fakeConn struct {
	net.Conn
	take   func(b []byte) (int, error)
	until  time.Time // the write deadline
	writes int
	taken  bytes.Buffer
	ended  chan struct{} // closed by either side
	once   sync.Once
	closed bool
}

func newFakeConn(take func(b []byte) (int, error)) *fakeConn {
	return &fakeConn{take: take, ended: make(chan struct{})}
}

func (c *fakeConn) Write(b []byte) (n int, err error) {
	c.writes++
	if n = len(b); c.take != nil {
		n, err = c.take(b)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		time.Sleep(time.Until(c.until))
	}
	c.taken.Write(b[:n])
	return n, err
}

func (c *fakeConn) Read([]byte) (int, error) {
	<-c.ended
	return 0, io.EOF
}

func (c *fakeConn) SetWriteDeadline(t time.Time) error {
	c.until = t
	return nil
}

func (c *fakeConn) end() { c.once.Do(func() { close(c.ended) }) }

func (c *fakeConn) Close() error {
	c.closed = true
	c.end()
	return nil
}

// fakeSocket returns a socket that dials with open.
func fakeSocket(t *testing.T, addr string, open func() (net.Conn, error)) *socket {
	t.Helper()
	a, err := wire.ParseAddress(addr)
	if err != nil {
		t.Fatal(err)
	}
	s := newSocket(a)
	s.dialer.open = func(context.Context, string, string) (net.Conn, error) { return open() }
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// transports has an address of each kind.
var transports = []string{"a:1", "tcp://a:1", "unix:///a", "unixstream:///a"}

func eachTransport(t *testing.T, test func(t *testing.T, addr string)) {
	for _, addr := range transports {
		t.Run(addr, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, addr) })
		})
	}
}

func takeNothing([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// A socket that takes nothing delays others by one deadline a second. It is well again once it
// takes something.
func TestStuckSocketIsLeftAlone(t *testing.T) {
	eachTransport(t, func(t *testing.T, addr string) {
		conn := newFakeConn(takeNothing)
		s := fakeSocket(t, addr, func() (net.Conn, error) { return conn, nil })
		start := time.Now()
		for range 1000 {
			if _, err := s.Send([]byte("p")); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if took := time.Since(start) - 5*time.Second; conn.writes > 2*6 || took > 6*(sendDeadline+leastWait) {
			t.Errorf("%d writes, which took %v in 5 s", conn.writes, took)
		}
		conn.take = nil
		time.Sleep(stuckFor)
		if _, err := s.Send([]byte("p")); err != nil {
			t.Errorf("after the rest: %v", err)
		}
	})
}

// However often a socket takes a packet just in time, its packets are delayed by little more than a
// fifth of a second.
func TestSlowSocketHoldsOthersUpForLittle(t *testing.T) {
	eachTransport(t, func(t *testing.T, addr string) {
		conn := newFakeConn(nil)
		conn.take = func(b []byte) (int, error) {
			const need = 20 * time.Millisecond
			if time.Until(conn.until) < need {
				return 0, os.ErrDeadlineExceeded
			}
			time.Sleep(need)
			return len(b), nil
		}
		s := fakeSocket(t, addr, func() (net.Conn, error) { return conn, nil })
		start, sent := time.Now(), 0
		for range 1000 {
			if _, err := s.Send([]byte("p")); err == nil {
				sent++
			}
		}
		if took := time.Since(start); sent != 10 || took > heldUpFor+2*leastWait {
			t.Errorf("%d packets were sent, which took %v", sent, took)
		}
	})
}

// Without a connection, packets wait for the first dial only, and only briefly. A dial that hangs
// delays no one, and Close ends it.
func TestDialDoesNotHoldUpPackets(t *testing.T) {
	eachTransport(t, func(t *testing.T, addr string) {
		s := fakeSocket(t, addr, nil)
		var dials atomic.Int64
		s.dialer.open = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials.Add(1)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		start := time.Now()
		for range 1000 {
			if _, err := s.Send([]byte("p")); err == nil {
				t.Fatal("a packet went by no connection")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(start) - 10*time.Second; took != firstWait || dials.Load() < 2 || dials.Load() > 6 {
			t.Errorf("held up for %v, %d dials", took, dials.Load())
		}
		if err := s.Close(); err != nil || time.Since(start) != 10*time.Second+firstWait {
			t.Errorf("Close: %v", err)
		}
	})
}

// A UDP socket is replaced from time to time. Packets use the old one until there is a new one.
func TestUDPSocketMovesWithItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := []*fakeConn{newFakeConn(nil), nil, newFakeConn(nil)}
		dials := 0
		s := fakeSocket(t, "a:1", func() (net.Conn, error) {
			dials++
			if conn := conns[dials-1]; conn != nil {
				return conn, nil
			}
			return nil, errors.New("no such host")
		})
		for range 700 {
			if _, err := s.Send([]byte("p")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if a, b := conns[0], conns[2]; dials != 3 || !a.closed || a.writes+b.writes != 700 || b.writes < 90 || b.writes > 101 {
			t.Errorf("%d dials; %d packets by the first, %d by the third", dials, a.writes, b.writes)
		}
	})
}

// While a UDP address has no listener, every packet but the first is reported as failed. So is the
// first packet on a new socket. Once there is a listener, all packets are sent again.
func TestRefusedDatagramsAreToldThroughout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := true
		s := fakeSocket(t, "a:1", func() (net.Conn, error) {
			answered := false
			return newFakeConn(func(b []byte) (int, error) {
				if away && answered {
					answered = false
					return 0, syscall.ECONNREFUSED
				}
				answered = true
				return len(b), nil
			}), nil
		})
		told := 0
		for range 1000 { // three sockets
			if _, err := s.Send([]byte("p")); err == nil {
				told++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if told != 1 {
			t.Errorf("%d packets told as sent to nobody", told)
		}
		away = false
		for range 20 {
			_, _ = s.Send([]byte("p"))
			time.Sleep(100 * time.Millisecond)
		}
		if _, err := s.Send([]byte("p")); err != nil || s.connect() != nil {
			t.Error(err)
		}
	})
}

// A connection that turns out to be broken is replaced for the same packet. A connection that the
// other side closed is noticed before anything is written to it.
func TestBrokenConnectionIsMadeAnew(t *testing.T) {
	for _, addr := range transports[1:] {
		t.Run(addr, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var conns []*fakeConn
				s := fakeSocket(t, addr, func() (net.Conn, error) {
					conns = append(conns, newFakeConn(nil))
					return conns[len(conns)-1], nil
				})
				send := func(name string, conn int) {
					t.Helper()
					time.Sleep(2 * time.Second)
					if _, err := s.Send([]byte(name)); err != nil || len(conns) != conn || !strings.Contains(conns[conn-1].taken.String(), name) {
						t.Fatalf("%s by %d connections: %v", name, len(conns), err)
					}
				}
				send("first", 1)
				conns[0].take = func([]byte) (int, error) { return 0, syscall.EPIPE }
				send("second", 2)
				if !conns[0].closed {
					t.Error("the broken connection is still open")
				}
				if s.addr.IsStream() {
					conns[1].end()
					send("third", 3)
					if conns[1].writes != 1 {
						t.Error("written to a connection that was closed")
					}
				}
				conns[len(conns)-1].take = func([]byte) (int, error) { return 0, syscall.ENOBUFS }
				if _, err := s.Send([]byte("p")); !errors.Is(err, syscall.ENOBUFS) || conns[len(conns)-1].closed {
					t.Errorf("a full socket: %v", err)
				}
			})
		})
	}
}

// A server that accepts connections only to close them counts as one outage, not as one for each.
func TestConnectionsThatEndAtOnceAreOneOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conn *fakeConn
		s := fakeSocket(t, "tcp://a:1", func() (net.Conn, error) {
			conn = newFakeConn(nil)
			return conn, nil
		})
		changes, failing := 0, false
		send := func() {
			if _, err := s.Send([]byte("p")); (err != nil) != failing {
				changes, failing = changes+1, err != nil
			}
			time.Sleep(100 * time.Millisecond)
		}
		for range 300 {
			send()
			conn.end()
			synctest.Wait()
		}
		if changes != 1 || !failing {
			t.Errorf("%d changes, failing: %v", changes, failing)
		}
		for range 30 {
			send()
		}
		if changes != 2 || failing {
			t.Errorf("%d changes, failing: %v", changes, failing)
		}
	})
}

// A stream accepts any part of each write and breaks anywhere. On each connection packets arrive
// whole and in order, except for the last one when it breaks. Packets reported as failed do not
// arrive. Packets reported as sent do, unless the connection breaks.
func TestStreamsStayWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			var conns []*fakeConn
			broken := false
			s := fakeSocket(t, "tcp://a:1", func() (net.Conn, error) {
				conns = append(conns, newFakeConn(func(b []byte) (int, error) {
					switch rapid.IntRange(0, 5).Draw(rt, "outcome") {
					case 0:
						return rapid.IntRange(0, len(b)-1).Draw(rt, "taken"), os.ErrDeadlineExceeded
					case 1:
						broken = true
						return rapid.IntRange(0, len(b)-1).Draw(rt, "taken"), syscall.ECONNRESET
					}
					return len(b), nil
				}))
				return conns[len(conns)-1], nil
			})
			told := make(map[string]error)
			for i := range rapid.IntRange(1, 40).Draw(rt, "packets") {
				packet := fmt.Sprintf("meta %04d\nline %04d", i, i)
				_, told[packet] = s.Send([]byte(packet))
				time.Sleep(time.Duration(rapid.IntRange(1, 1500).Draw(rt, "pause")) * time.Millisecond)
			}
			for _, c := range conns {
				c.take = nil
			}
			time.Sleep(2 * stuckFor)
			if err := s.Close(); err != nil {
				rt.Fatal(err)
			}
			came, torn, last := make(map[string]bool), []string{}, -1
			for i, c := range conns {
				text, whole := strings.CutSuffix(c.taken.String(), "\n")
				lines := strings.Split(text, "\n")
				for len(lines) >= 2 && (len(lines) > 2 || whole) {
					var n, m int
					packet := lines[0] + "\n" + lines[1]
					if _, err := fmt.Sscanf(packet, "meta %d\nline %d", &n, &m); err != nil || n != m || n <= last {
						rt.Fatalf("%q on connection %d after packet %d", packet, i, last)
					}
					came[packet], last, lines = true, n, lines[2:]
				}
				if n := ""; len(lines) > 0 && len(lines[0]) == len("meta 0000") {
					_, _ = fmt.Sscanf(lines[0], "meta %s", &n)
					torn = append(torn, "meta "+n+"\nline "+n)
				}
			}
			for _, packet := range torn {
				if came[packet] {
					rt.Fatalf("%q came whole, and in part before", packet)
				}
			}
			for packet, err := range told {
				switch {
				case !broken && came[packet] != (err == nil):
					rt.Fatalf("%q came: %v, told: %v", packet, came[packet], err)
				case came[packet] && err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, errClosed):
					rt.Fatalf("%q came, and was told as failed: %v", packet, err)
				}
			}
		})
	})
}
