package kafkasink_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/internal/testenv"
)

// A broker stops and restarts on its port.
func TestOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	port := testenv.FreePort(t)
	addrs := []string{fmt.Sprintf("127.0.0.1:%d", port)}
	c := fake(t, kfake.Ports(port))
	g := &giver{t: t, sink: newSink(t, config(addrs, func(c *kafkasink.Config) { c.Buffer = 1 << 20 }))}
	g.connect()
	g.send(collector.Flush{}, terms(10)...)
	g.drained()
	c.Close()
	full := false
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		g.send(collector.Flush{}, terms(2000)...)
		s := g.sink.Stats()
		if s.Buffered > 1<<20 {
			t.Fatalf("%d bytes are buffered", s.Buffered)
		}
		full = full || s.Failed.BufferFull > 0
	}
	if !full || g.failed == 0 || g.err == nil {
		t.Errorf("full %v, failed %d, %v", full, g.failed, g.err)
	}
	fake(t, kfake.Ports(port))
	back := time.Now()
	delivered := g.sink.Stats().Delivered
	g.await("recovery", func(s kafkasink.Stats) bool { return s.Delivered > delivered && s.Connected })
	if took := time.Since(back); took > 2*time.Second {
		t.Errorf("it took %v to recover", took)
	}
	g.drained()
	g.send(collector.Flush{}, terms(10)...)
	g.drained()
	got := newReader(t, addrs).until(func(got []received) bool { return stated(got) == g.given })
	inPlace(t, got)
	g.conserved()
}

// stated returns the counts that the newest record of each partition states as given, so that
// receivers know what was dropped.
func stated(got []received) (sum int64) {
	newest := make(map[int32]received)
	for _, r := range got {
		if r.Seq >= newest[r.partition].Seq {
			newest[r.partition] = r
		}
	}
	for _, r := range newest {
		sum += int64(r.Sums.Booked+r.Sums.Loose) + sumOf(r.value)
	}
	return sum
}

// inPlace checks that each partition's numbers rise, counting only the first arrival of each. There
// may be gaps, and a batch whose answer was lost may arrive again as a whole.
func inPlace(t testing.TB, got []received) {
	t.Helper()
	type number struct {
		partition int32
		seq       uint64
	}
	seen, last := make(map[number]bool), make(map[int32]uint64)
	for _, r := range got {
		n := number{r.partition, r.Seq}
		if seen[n] {
			continue
		}
		seen[n] = true
		if r.Seq < last[r.partition] {
			t.Errorf("partition %d: %d comes after %d", r.partition, r.Seq, last[r.partition])
		}
		last[r.partition] = r.Seq
	}
}

func TestKafkaComesLate(t *testing.T) {
	t.Parallel()
	port := testenv.FreePort(t)
	addrs := []string{fmt.Sprintf("127.0.0.1:%d", port)}
	g := &giver{t: t, sink: newSink(t, config(addrs))}
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		g.send(collector.Flush{Aged: 1}, count("terms", "GET /search?q=a", 2))
	}
	if g.failed != g.given || g.err == nil {
		t.Errorf("given %d, failed %d, %v", g.given, g.failed, g.err)
	}
	lost := g.given
	fake(t, kfake.Ports(port))
	g.await("connection", func(s kafkasink.Stats) bool { return s.Connected })
	g.send(collector.Flush{}, count("terms", "GET /search?q=a", 2))
	g.drained()
	aged := int64(0)
	for _, r := range newReader(t, addrs).atLeast(3) {
		if r.Unsent != lost || r.Seq != 1 { // sent to all, since any key may be among them
			t.Errorf("partition %d: unsent %d of %d", r.partition, r.Unsent, lost)
		}
		aged += r.Aged
	}
	if aged == 0 {
		t.Error("what aged is not told")
	}
	g.conserved()
}

func TestNeverConnected(t *testing.T) {
	t.Parallel()
	quiet, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	g := &giver{t: t, sink: newSink(t, config([]string{quiet.Addr().String()}))}
	g.send(collector.Flush{}, terms(5)...)
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	if s := g.conserved(); s.Failed.NotConnected != 5 {
		t.Errorf("%+v", s)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
}

func TestCloseGivesUpInTime(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kafkasink.Config){"acks 1": nil, "idempotent": idempotent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake(t)
			if change == nil {
				change = func(*kafkasink.Config) {}
			}
			g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), change))}
			g.connect()
			g.drained()
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				return nil, nil, true // never answered
			})
			g.send(collector.Flush{}, terms(50)...)
			g.send(collector.Flush{}, terms(50)...)
			began := time.Now()
			if err := g.sink.Close(); err == nil {
				t.Error("Close tells no loss")
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("Close took %v", took)
			}
			if s := g.conserved(); s.Failed.Delivery != 100 {
				t.Errorf("%+v", s)
			}
			if sent := g.send(collector.Flush{}, terms(1)...); sent.Failed != 1 || sent.Err == nil {
				t.Errorf("after Close: %+v", sent)
			}
		})
	}
}

func idempotent(c *kafkasink.Config) { c.Acks, c.Idempotent = kafkasink.AcksAll, true }
func acksAll(c *kafkasink.Config)    { c.Acks = kafkasink.AcksAll }

// Brokers answer with errors while leaders change.
func TestLeaderChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	for name, change := range map[string]func(*kafkasink.Config){
		"acks 1": func(*kafkasink.Config) {}, "acks all": acksAll, "idempotent": idempotent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake(t, kfake.NumBrokers(3))
			g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), change))}
			g.connect()
			for _, err := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.RequestTimedOut, kerr.LeaderNotAvailable} {
				c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: err, Count: 3, Partitions: []int32{0, 1}})
				for range 20 {
					g.send(collector.Flush{}, terms(50)...)
					time.Sleep(5 * time.Millisecond)
				}
				c.ShufflePartitionLeaders()
			}
			g.drained()
			got := newReader(t, c.ListenAddrs()).until(func(got []received) bool { return seen(got) >= g.given })
			inPlace(t, got)
			if s := g.conserved(); s.Failed.Sum() != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// seen returns the sum of the counts, with each record taken once.
func seen(got []received) (sum int64) {
	type number struct {
		life      uint64
		partition int32
		seq       uint64
	}
	once := make(map[number]bool)
	for _, r := range got {
		if k := (number{r.Incarnation, r.partition, r.Seq}); !once[k] {
			once[k] = true
			sum += sumOf(r.value)
		}
	}
	return sum
}
