package statsdsource

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// addressed is a connection of a peer at an address.
type addressed struct {
	net.Conn
	from netip.AddrPort
}

func (a addressed) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(a.from) }

// While one peer holds all the connections that it can get, whatever it does with them, senders at
// other addresses get in and stay. While many hold one each and send no line, they do as well.
func TestOnePeerLocksNobodyOut(t *testing.T) {
	for name, hostile := range map[string]struct {
		text      string
		every     time.Duration
		addresses int
	}{
		"idle":                         {"", time.Hour, 1},
		"byte by byte":                 {"x", 14 * time.Second, 1},
		"byte by byte, many addresses": {"x", 14 * time.Second, 40},
		"garbage":                      {"garbage\n", time.Second, 1},
		"lines":                        {"others.metric:1|c\n", 10 * time.Second, 1},
		"lines, at once":               {"others.metric:1|c\n", 100 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, a, d, end := streaming(t, 0)
				r.maxConns = 32
				ctx, cancel := context.WithCancel(t.Context())
				// send connects, reconnects when it is closed, and writes a text each time.
				send := func(address, text string, every time.Duration, connected, sent *atomic.Int64) {
					for ctx.Err() == nil {
						ours, theirs := net.Pipe()
						select {
						case a.conns <- addressed{ours, netip.MustParseAddrPort(address)}:
							connected.Add(1)
						case <-ctx.Done():
							return
						}
						stop := context.AfterFunc(ctx, func() { _ = theirs.Close() })
						for text != "" {
							if _, err := theirs.Write([]byte(text)); err != nil {
								break
							}
							sent.Add(1)
							time.Sleep(every)
						}
						if text == "" {
							_, _ = theirs.Read(make([]byte, 1)) // until it is closed
						}
						stop()
						_ = theirs.Close()
						time.Sleep(50 * time.Millisecond)
					}
				}
				var hostiles, connected, sent atomic.Int64
				var sending sync.WaitGroup
				for i := range 40 {
					address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i % hostile.addresses)}), 99).String()
					sending.Go(func() { send(address, hostile.text, hostile.every, &hostiles, new(atomic.Int64)) })
				}
				time.Sleep(20 * time.Second)
				const senders = 5
				for i := range senders {
					address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 99).String()
					sending.Go(func() { send(address, "shop.terms.hot_param.k:1|c\n", time.Second, &connected, &sent) })
				}
				time.Sleep(time.Minute)
				cancel()
				synctest.Wait()
				if n := connected.Load(); n != senders {
					t.Errorf("%d connections of %d senders", n, senders)
				}
				if n := d.Stats().Counts; n != sent.Load() || n < 60*senders {
					t.Errorf("counted %d of %d", n, sent.Load())
				}
				if s := base.LoadCounters[ListenerStats](r.stats); hostiles.Load() < 32 || s.Unused+s.Silent+s.Crowded < senders {
					t.Errorf("%d hostile connections, %+v", hostiles.Load(), s)
				}
				sending.Wait()
				end()
			})
		})
	}
}

// A connection that has sent no line yet stays while a peer with more of them opens others.
func TestUnusedConnectionsOfFewStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStreamReader(new(listenerStats))
		r.maxConns = 8
		admit := func(address string) *conn {
			ours, _ := pipe(t)
			time.Sleep(time.Millisecond)
			return r.admit(addressed{ours, netip.MustParseAddrPort(address)})
		}
		quiet := admit("10.0.0.1:1")
		for range 50 {
			if admit("203.0.113.9:1") == nil {
				t.Fatal("an unused connection did not make room")
			}
		}
		if !r.reads(quiet) {
			t.Error("the only connection of a peer made room for one of another peer's many")
		}
	})
}
