package statsdsource

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

// pipe returns both ends of a connection, which is closed with the test.
func pipe(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	ours, theirs = net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// The number of connections is bounded. Above the bound, the oldest one that has sent nothing is
// closed, then the sender with the longest silence, if that is long enough. Otherwise the new one
// is refused.
func TestStreamReaderBoundsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStreamReader(new(listenerStats))
		var conns []*conn
		for i := range r.maxConns {
			ours, _ := pipe(t)
			c := r.admit(ours)
			if i != 5 && i != 6 {
				c.heard.Store(time.Now().UnixNano())
			}
			conns = append(conns, c)
			time.Sleep(time.Millisecond)
		}
		closed := func(c *conn) bool { // or will be by its goroutine
			r.mu.Lock()
			defer r.mu.Unlock()
			_, isRead := r.conns[c]
			return !isRead
		}
		var newest *conn
		for _, i := range []int{5, 6} {
			welcome, _ := pipe(t)
			if newest = r.admit(welcome); newest == nil || !closed(conns[i]) {
				t.Fatalf("connection %d did not make room", i)
			}
			newest.heard.Store(time.Now().UnixNano())
		}
		refused, theirs := pipe(t)
		if r.admit(refused) != nil {
			t.Fatal("a sender made room")
		}
		if _, err := theirs.Write([]byte("x")); err == nil {
			t.Error("the refused connection is open")
		}
		conns[7].heard.Add(-2 * int64(silentFor))
		conns[8].heard.Add(-3 * int64(silentFor))
		welcome, _ := pipe(t)
		idle := r.admit(welcome)
		if idle == nil || !closed(conns[8]) || closed(conns[7]) {
			t.Error("not the one that was silent longest made room")
		}
		if _, err := conns[8].Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the silent connection is read: %v", err)
		}
		// When descriptors are short, a new connection is spared.
		if !r.makeRoom(time.Now()) || closed(idle) || !closed(conns[7]) {
			t.Error("not the silent one made room for want of descriptors")
		}
		if r.makeRoom(time.Now()) {
			t.Error("somebody made room who had just come, or a sender")
		}
		time.Sleep(justCame)
		if !r.makeRoom(time.Now()) || !closed(idle) {
			t.Error("the idle one did not make room for want of descriptors")
		}
		if s := base.LoadCounters[ListenerStats](r.stats); s.Refused != 1 || s.Unused != 3 || s.Silent != 2 || s.Accepted != int64(r.maxConns)+3 {
			t.Errorf("stats %+v", s)
		}
	})
}

// However connections arrive and send, no sender is closed for one that does not send, and there
// are never too many.
func TestLiveSendersStay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newStreamReader(new(listenerStats))
			r.maxConns = 8
			live := make(map[*conn]time.Time) // when it sent last
			for range rapid.IntRange(1, 200).Draw(rt, "steps") {
				switch rapid.IntRange(0, 4).Draw(rt, "step") {
				case 0:
					ours, _ := pipe(t)
					r.admit(ours)
				case 1:
					ours, _ := pipe(t)
					if c := r.admit(ours); c != nil {
						c.heard.Store(time.Now().UnixNano())
						live[c] = time.Now()
					}
				case 2:
					for c := range live {
						if rapid.Bool().Draw(rt, "sends") && r.reads(c) {
							c.heard.Store(time.Now().UnixNano())
							live[c] = time.Now()
						}
					}
				case 3:
					r.makeRoom(time.Now())
				default:
					time.Sleep(time.Duration(rapid.IntRange(1, 6000).Draw(rt, "ms")) * time.Millisecond)
				}
				for c, at := range live {
					if !r.reads(c) {
						if time.Since(at) < silentFor {
							rt.Fatalf("a sender was closed %v after it sent", time.Since(at))
						}
						delete(live, c)
					}
				}
				if len(r.conns) > r.maxConns {
					rt.Fatalf("%d connections", len(r.conns))
				}
			}
		})
	})
}

func (r *streamReader) reads(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, is := r.conns[c]
	return is
}

// acceptor is a listener that fails several times before it has a connection.
type acceptor struct {
	failures atomic.Int32
	conns    chan net.Conn
	wake     chan struct{} // closed when the deadline has passed
}

func (a *acceptor) Accept() (net.Conn, error) {
	if a.failures.Add(-1) >= 0 {
		return nil, os.NewSyscallError("accept", errors.New("too many open files"))
	}
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.wake:
		return nil, os.ErrDeadlineExceeded
	}
}

func (a *acceptor) SetDeadline(end time.Time) error {
	if wait := time.Until(end); wait > 0 {
		time.AfterFunc(wait, func() { a.wake <- struct{}{} })
	} else {
		a.wake <- struct{}{}
	}
	return nil
}

func (*acceptor) Addr() net.Addr { return nil }
func (*acceptor) Close() error   { return nil }

// streaming runs a stream reader on an acceptor in a bubble. end stops it.
func streaming(t *testing.T, failures int32) (r *streamReader, a *acceptor, d *decode.Decoder, end func()) {
	rules := testRules(hotRule("terms", 1, time.Hour))
	shards := aggregator.NewShards(aggregator.DetectorConfig{Rules: rules, Publisher: newRecorder(), Memory: 4 << 20}, 1, 1)
	a = &acceptor{conns: make(chan net.Conn), wake: make(chan struct{}, 1)}
	a.failures.Store(failures)
	r = newStreamReader(new(listenerStats))
	r.listeners = []streamListener{a}
	d = decode.NewDecoder(rules, wire.Plain)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	var working sync.WaitGroup
	working.Go(shards.Run)
	go func() { ran <- r.run(ctx, d, shards.Feed(0)) }()
	return r, a, d, func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		shards.Close()
		working.Wait()
	}
}

// If accepting a connection fails, that is counted, and accepting is tried again after a while.
func TestAcceptGoesOnAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, a, d, end := streaming(t, 12)
		defer end()
		began := time.Now()
		ours, theirs := net.Pipe()
		a.conns <- ours
		if waited := time.Since(began); waited < time.Second || waited > 6*time.Second {
			t.Errorf("tried again for %v", waited)
		}
		_, _ = theirs.Write([]byte("shop.terms.hot_param.k:1|c\n"))
		_ = theirs.Close()
		synctest.Wait()
		if s := base.LoadCounters[ListenerStats](r.stats); s != (ListenerStats{Accepted: 1, AcceptFailed: 12}) || d.Stats().Counts != 1 {
			t.Errorf("stats %+v, %+v", s, d.Stats())
		}
	})
}

// The end waits neither for the pause after a failure nor for a client that keeps sending.
func TestStreamReaderEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, d, end := streaming(t, 0)
		ours, theirs := net.Pipe()
		a.conns <- ours
		a.failures.Store(1000)
		sent := make(chan int64)
		go func() {
			n := int64(0)
			for {
				if _, err := theirs.Write([]byte("shop.terms.hot_param.k:1|c\n")); err != nil {
					break
				}
				n++
				time.Sleep(10 * time.Millisecond)
			}
			sent <- n
		}()
		time.Sleep(3 * time.Second)
		began := time.Now()
		end()
		if took := time.Since(began); took > 5*drainFor {
			t.Errorf("the end took %v", took)
		}
		if n := <-sent; d.Stats().Counts < n || n < 250 {
			t.Errorf("counted %d of %d", d.Stats().Counts, n)
		}
	})
}

// A line that the end of a connection truncates is no count, and is counted as cut off.
func TestStreamsThatAreCutOff(t *testing.T) {
	for _, test := range []struct {
		name, sent string
		broken     bool // the connection ends by an error
		counts     int64
		truncated  int64
		tooLong    int64
	}{
		{"a line without a newline", "shop.terms.hot_param.k:1|c", false, 1, 0, 0},
		{"the same of a broken connection", "shop.terms.hot_param.k:1|c\nshop.terms.hot_param.k:1|c", true, 1, 1, 0},
		{"nothing is missing", "shop.terms.hot_param.k:1|c\n", true, 1, 0, 0},
		{"a frame", withLength("shop.terms.hot_param.k:1|c") + withLength("shop.terms.hot_param.k:1|c")[:20], false, 1, 1, 0},
		{"a line that does not end", "shop.terms.hot_param.k:1|c\n" + strings.Repeat("k", maxBuffer), false, 1, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, a, d, end := streaming(t, 0)
				ours, theirs := net.Pipe()
				a.conns <- ours
				_, _ = theirs.Write([]byte(test.sent))
				synctest.Wait()
				if test.broken {
					_ = ours.Close()
				} else {
					_ = theirs.Close()
				}
				synctest.Wait()
				if s := base.LoadCounters[ListenerStats](r.stats); s.Truncated != test.truncated || s.TooLong != test.tooLong || d.Stats().Counts != test.counts || d.Stats().Malformed != 0 {
					t.Errorf("stats %+v, %+v", s, d.Stats())
				}
				end()
			})
		})
	}
}
