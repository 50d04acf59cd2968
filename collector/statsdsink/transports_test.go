package statsdsink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// receiver listens at an address until it is stopped.
type receiver struct {
	addr     wire.Address
	close    func() error
	running  sync.WaitGroup
	mu       sync.Mutex
	streams  []net.Conn
	packets  []string // one for each stream connection that has ended
	received chan struct{}
}

// listen receives the packets sent to an address.
func listen(t *testing.T, addr wire.Address) *receiver {
	t.Helper()
	r := &receiver{addr: addr, received: make(chan struct{}, 1)}
	if addr.IsStream() {
		l, err := net.Listen(addr.Network, addr.Addr)
		if err != nil {
			t.Fatal(err)
		}
		r.addr.Addr, r.close = l.Addr().String(), l.Close
		r.running.Go(func() { r.accept(l) })
	} else {
		if addr.Network == "unixgram" {
			_ = os.Remove(addr.Addr)
		}
		conn, err := net.ListenPacket(addr.Network, addr.Addr)
		if err != nil {
			t.Fatal(err)
		}
		r.addr.Addr, r.close = conn.LocalAddr().String(), conn.Close
		r.running.Go(func() { r.read(conn) })
	}
	t.Cleanup(r.stop)
	return r
}

func (r *receiver) read(conn net.PacketConn) {
	buf := make([]byte, 1<<16)
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		r.add(string(buf[:n]))
	}
}

func (r *receiver) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.streams = append(r.streams, conn)
		r.mu.Unlock()
		r.running.Go(func() {
			text, buf := bytes.Buffer{}, make([]byte, 1<<16)
			for {
				n, err := conn.Read(buf)
				text.Write(buf[:n])
				for line, err := text.ReadString('\n'); ; line, err = text.ReadString('\n') {
					if err != nil {
						text.WriteString(line)
						break
					}
					r.add(strings.TrimSuffix(line, "\n"))
				}
				if err != nil {
					r.add(text.String()) // half a line, or nothing
					return
				}
			}
		})
	}
}

func (r *receiver) add(text string) {
	r.mu.Lock()
	if text != "" {
		r.packets = append(r.packets, text)
	}
	r.mu.Unlock()
	select {
	case r.received <- struct{}{}:
	default:
	}
}

// stop closes the listener and its connections, as the end of a process would.
func (r *receiver) stop() {
	_ = r.close()
	r.mu.Lock()
	for _, conn := range r.streams {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
}

// counts returns the sums of the received counts by key. Half a line is an error.
func (r *receiver) counts(t *testing.T) map[string]int64 {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	sums := make(map[string]int64)
	for _, p := range r.packets {
		for line := range strings.SplitSeq(p, "\n") {
			if wire.IsMeta([]byte(line)) {
				if _, err := wire.ParseMeta([]byte(line)); err != nil {
					t.Errorf("%q: %v", line, err)
				}
				continue
			}
			l, err := wire.ParseLine([]byte(line))
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
			sums[string(l.Key)] += l.N
		}
	}
	return sums
}

// await waits until ok reports true for the received counts.
func (r *receiver) await(t *testing.T, what string, ok func(counts map[string]int64) bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !ok(r.counts(t)) {
		select {
		case <-r.received:
		case <-late:
			t.Fatalf("%s: received %v", what, r.counts(t))
		}
	}
}

// eachListener runs test with an address of each kind that has no listener yet.
func eachListener(t *testing.T, test func(t *testing.T, addr wire.Address)) {
	for _, network := range []string{"udp", "tcp", "unixgram", "unix"} {
		t.Run(network, func(t *testing.T) {
			addr := "127.0.0.1:0"
			if strings.HasPrefix(network, "unix") {
				dir, err := os.MkdirTemp("", "hp") // t.TempDir may be too long for a socket's path
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
				addr = filepath.Join(dir, "s")
			}
			test(t, wire.Address{Network: network, Addr: addr})
		})
	}
}

// Over each transport, with meta lines and without, all counts that are reported as sent arrive
// once.
func TestStatsDSendsOverEachTransport(t *testing.T) {
	eachListener(t, func(t *testing.T, addr wire.Address) {
		for _, plain := range []bool{false, true} {
			r := listen(t, addr)
			s := newSink(t, Config{Addrs: []string{r.addr.String()}, NoMeta: plain})
			want, sum := make(map[string]int64), int64(0)
			for flush := range 20 {
				counts := make([]collector.Count, 400) // several packets, of either size
				for i := range counts {
					name := fmt.Sprintf("key-%d-%d", flush, i)
					want[name] = int64(i + 1)
					counts[i] = count("terms", name, want[name])
					sum += want[name]
				}
				sent := s.Send(t.Context(), collector.Flush{Start: time.Now(), Held: 1}, counts)
				sum -= sent.Failed
				if sent.Err != nil { // the reader is stuck, as it does not run
					time.Sleep(stuckFor)
				}
				r.await(t, "what was sent", func(got map[string]int64) bool { // UDP's buffer holds one flush
					came := int64(0)
					for name, n := range got {
						if n != want[name] {
							t.Fatalf("%d of %q came, want %d", n, name, want[name])
						}
						came += n
					}
					return came >= sum
				})
			}
			got, came := r.counts(t), int64(0)
			for _, n := range got {
				came += n
			}
			if came != sum || len(got) < len(want)/10 {
				t.Errorf("%d counts of %d keys came, want %d of %d", came, len(got), sum, len(want))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			r.stop()
		}
	})
}

// While the aggregator's address has no listener, counts are reported as failed, and the log says
// so once. When the aggregator returns, counts arrive again without any change here.
func TestStatsDOutlivesItsAggregator(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	eachListener(t, func(t *testing.T, addr wire.Address) {
		if strings.HasSuffix(addr.Addr, ":0") {
			addr.Addr = fmt.Sprint("127.0.0.1:", testenv.FreePort(t)) // no one else uses the port between two listeners
		}
		r := listen(t, addr)
		var log strings.Builder
		sink := newSink(t, Config{Addrs: []string{r.addr.String()}})
		c := newCollector(t, collector.Config{Sink: sink, Log: slog.New(slog.NewTextHandler(&log, nil))})
		flush := func(text string) {
			c.Add(rules.Hash([]byte(text)), []byte("terms "+text), 1)
			c.Flush(t.Context(), time.Now())
		}
		failed := func() int64 { return c.Stats().Dropped.SendError }
		flush("first")
		r.await(t, "the first", func(got map[string]int64) bool { return got["first"] == 1 })
		r.stop()

		late := time.Now().Add(30 * time.Second)
		for i := 0; failed() < 20; i++ {
			flush("away")
			if time.Now().After(late) {
				t.Fatalf("%d of %d counts reported as failed", failed(), i)
			}
		}
		if warned := strings.Count(log.String(), "WARN"); warned != 1 {
			t.Errorf("warned %d times over one outage:\n%s", warned, log.String())
		}

		r = listen(t, r.addr)
		for !strings.Contains(log.String(), `msg="counts are sent again"`) {
			flush("back")
			if time.Now().After(late) {
				t.Fatalf("not well again: %+v\n%s", c.Stats(), log.String())
			}
			time.Sleep(5 * time.Millisecond)
		}
		for r.counts(t)["well"] == 0 {
			flush("well")
			if time.Now().After(late) {
				t.Fatal("nothing comes")
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
		stuck := strings.Contains(log.String(), os.ErrDeadlineExceeded.Error()) // the reader did not run for a while
		if changes := strings.Count(log.String(), "\n"); changes != 2 && !stuck {
			t.Errorf("an outage took %d lines of the log:\n%s", changes, log.String())
		}
	})
}

// An aggregator reads nothing. Its stream takes packets until the system's buffers are full, and
// then they are reported as failed. All packets that were reported as sent are there when it reads
// again, and none is torn.
func TestStatsDKeepsStreamsWholeBeforeASlowAggregator(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, network := range []string{"tcp", "unix", "unixgram"} {
		t.Run(network, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "hp")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			addr, reading := filepath.Join(dir, "s"), make(chan []string)
			if network == "unixgram" {
				conn, err := net.ListenPacket(network, addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				go readDatagrams(conn, reading)
			} else {
				if network == "tcp" {
					addr = "127.0.0.1:0"
				}
				l, err := net.Listen(network, addr)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				addr = l.Addr().String()
				go readStream(l, reading)
			}
			s := newSocket(wire.Address{Network: network, Addr: addr})
			packet := bytes.Repeat([]byte("x"), wire.MaxPacket)
			sent, late := 0, time.Now().Add(30*time.Second)
			send := func() error {
				_, err := s.Send(fmt.Appendf(packet[:wire.MaxPacket-8], "%8d", sent))
				if err == nil {
					sent++
				}
				return err
			}
			for {
				if err := send(); errors.Is(err, os.ErrDeadlineExceeded) {
					break
				} else if err != nil || time.Now().After(late) {
					t.Fatalf("after %d packets: %v", sent, err)
				}
			}
			full := sent
			<-reading // lets the reader start
			for send() != nil {
				if time.Now().After(late) {
					t.Fatal("not well again")
				}
				time.Sleep(10 * time.Millisecond)
			}
			for network == "unixgram" {
				if _, err := s.Send([]byte("end")); err == nil {
					break
				}
				if time.Now().After(late) {
					t.Fatal("not well again")
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			got := <-reading
			if full < 5 || len(got) != sent {
				t.Fatalf("%d packets came of %d, of which %d filled the buffers", len(got), sent, full)
			}
			for i, p := range got {
				if want := fmt.Sprintf("%8d", i); len(p) != wire.MaxPacket || !strings.HasSuffix(p, want) {
					t.Fatalf("packet %d: %d bytes, %q", i, len(p), p[max(0, len(p)-8):])
				}
			}
		})
	}
}

// readStream accepts one connection, reports it, and then reads to its end.
func readStream(l net.Listener, out chan<- []string) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	out <- nil
	all, _ := io.ReadAll(conn)
	out <- strings.Split(strings.TrimSuffix(string(all), "\n"), "\n")
}

// readDatagrams reports that it is ready, and then reads until the packet "end".
func readDatagrams(conn net.PacketConn, out chan<- []string) {
	out <- nil
	var all []string
	buf := make([]byte, 1<<16)
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil || string(buf[:n]) == "end" {
			out <- all
			return
		}
		all = append(all, string(buf[:n]))
	}
}

// A sink for a foreign StatsD sends nothing while there are no counts, but it connects before they
// come.
func TestStatsDWithoutMetaConnectsBeforeThereAreCounts(t *testing.T) {
	eachListener(t, func(t *testing.T, addr wire.Address) {
		r := listen(t, addr)
		s := newSink(t, Config{Addrs: []string{r.addr.String()}, NoMeta: true})
		defer s.Close()
		for range 3 {
			if sent := s.Send(t.Context(), collector.Flush{Start: time.Now(), Held: 7, Unsent: 5, Aged: 3}, nil); sent.Packets != 0 {
				t.Errorf("%+v", sent)
			}
		}
		if s.packers[0].outs[0].(*socket).conn == nil {
			t.Error("there is no connection")
		}
		s.Send(t.Context(), collector.Flush{Start: time.Now(), Held: 1}, []collector.Count{count("terms", "k", 1)})
		r.await(t, "a count", func(got map[string]int64) bool { return got["k"] == 1 })
		r.stop()
		if network := addr.Network; network == "tcp" || network == "unix" {
			for late := time.Now().Add(30 * time.Second); s.Send(t.Context(), collector.Flush{Held: 1}, nil).Err == nil; time.Sleep(time.Millisecond) {
				if time.Now().After(late) {
					t.Fatal("StatsD has gone, and no Send without counts reported it")
				}
			}
		}
	})
}

// sinkhole listens at an address and discards its input without allocating.
func sinkhole(t testing.TB, addr wire.Address) wire.Address {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	discard := func(conn io.Reader) {
		buf := make([]byte, 1<<16)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
		}
	}
	if addr.IsStream() {
		l, err := net.Listen(addr.Network, addr.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		running.Go(func() {
			if conn, err := l.Accept(); err == nil {
				defer conn.Close()
				discard(conn)
			}
		})
		return wire.Address{Network: addr.Network, Addr: l.Addr().String()}
	}
	conn, err := net.ListenPacket(addr.Network, addr.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	running.Go(func() { discard(conn.(io.Reader)) })
	return wire.Address{Network: addr.Network, Addr: conn.LocalAddr().String()}
}

func TestSocketsDoNotAllocate(t *testing.T) {
	eachListener(t, func(t *testing.T, addr wire.Address) {
		s := newSocket(sinkhole(t, addr))
		packet := make([]byte, wire.MaxPacket)
		send := func() { _, _ = s.Send(packet) }
		send()
		if n := testing.AllocsPerRun(1000, send); n >= 1 {
			t.Errorf("%v allocations for each packet", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkSocketSend(b *testing.B) {
	for _, network := range []string{"udp", "tcp", "unixgram", "unix"} {
		b.Run(network, func(b *testing.B) {
			addr := "127.0.0.1:0"
			if strings.HasPrefix(network, "unix") {
				addr = filepath.Join(b.TempDir(), "s")
			}
			s := newSocket(sinkhole(b, wire.Address{Network: network, Addr: addr}))
			defer s.Close()
			packet, failed := make([]byte, wire.MaxPacket), 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Send(packet); err != nil {
					failed++
				}
			}
			b.ReportMetric(float64(failed), "failed")
		})
	}
}
