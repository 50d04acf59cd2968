package kafkasink_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
)

func TestRecordsOfAFlush(t *testing.T) {
	c := fake(t)
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs()))}
	g.connect()
	start := time.Unix(1_700_000_000, 0)
	early := start.Add(-time.Second)
	a, b := count("terms", "GET /search?q=a", 3), count("share", "GET /x?q=café", 2)
	a.Start = early
	sent := g.send(collector.Flush{Start: start, Now: start.Add(100 * time.Millisecond), Held: 7, Unsent: 5, Aged: 9}, append([]collector.Count{a, b}, terms(100)...)...)
	if sent.Lines != 102 || sent.Failed != 0 || sent.Err != nil {
		t.Errorf("sent %+v", sent)
	}
	g.drained()
	got := newReader(t, c.ListenAddrs()).atLeast(int(g.sink.Stats().Records))
	sum, aged := int64(0), int64(0)
	unsent := make(map[int32]int64)
	for _, r := range got {
		if !r.ours || string(r.Instance) != "web-1" || string(r.Namespace) != "shop" || r.Partitions != 3 {
			t.Errorf("head %+v", r.RecordHead)
		}
		unsent[r.partition] += r.Unsent
		aged += r.Aged
		if r.value == "" {
			continue
		}
		if r.Sent != start.Add(100*time.Millisecond).UnixNano() {
			t.Errorf("sent at %v", time.Unix(0, r.Sent))
		}
		if r.Held != 7 || r.Start != start.UnixNano() && r.Start != early.UnixNano() || (r.Unsent > 0) != (r.Start == start.UnixNano()) {
			t.Errorf("head %+v", r.RecordHead)
		}
		for line := range strings.SplitSeq(r.value, "\n") {
			l, err := wire.ParseLine([]byte(line))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			home := wire.Partition(l.Key, 3)
			if string(l.Prefix) == "shop.share" {
				home = wire.Partition(l.Prefix, 3)
				if string(l.Key) != "GET%20/x?q=caf%C3%A9" {
					t.Errorf("key %q", l.Key)
				}
			}
			if r.partition != home {
				t.Errorf("%q is in partition %d, want %d", line, r.partition, home)
			}
			if (r.Start == early.UnixNano()) != (l.N == 3) {
				t.Errorf("%q is of %v", line, time.Unix(0, r.Start))
			}
			sum += l.N
		}
	}
	if sum != 105 || aged != 9 || unsent[0] != 5 || unsent[1] != 5 || unsent[2] != 5 {
		t.Errorf("sum %d, aged %d, unsent %v", sum, aged, unsent)
	}
	inOrder(t, got)
	g.conserved()
}

// inOrder checks that each partition's numbers rise by one.
func inOrder(t testing.TB, got []received) {
	t.Helper()
	last := make(map[int32]uint64)
	for _, r := range got {
		if r.Seq != last[r.partition]+1 {
			t.Errorf("partition %d: %d comes after %d", r.partition, r.Seq, last[r.partition])
		}
		last[r.partition] = r.Seq
	}
}

// sumOf returns the sum of a value's counts.
func sumOf(value string) (sum int64) {
	for line := range strings.SplitSeq(value, "\n") {
		if l, err := wire.ParseLine([]byte(line)); err == nil {
			sum += l.N
		}
	}
	return sum
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	c := fake(t)
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs()))}
	g.connect()
	read := newReader(t, c.ListenAddrs())
	per := func() map[int32]int {
		g.drained()
		n := make(map[int32]int)
		for _, r := range read.atLeast(int(g.sink.Stats().Records)) {
			n[r.partition]++
		}
		return n
	}
	one := count("terms", "GET /search?q=a", 1)
	home := wire.Partition([]byte("GET%20/search?q=a"), 3)
	g.send(collector.Flush{}) // the first reported all
	want := per()
	all := func(n int) {
		for p := range int32(3) {
			want[p] += n
		}
	}
	for _, step := range []struct {
		name   string
		flush  collector.Flush
		counts []collector.Count
		beats  bool // all partitions get a record
	}{
		{"one partition's", collector.Flush{}, []collector.Count{one}, false},
		{"no counts", collector.Flush{}, nil, true},
		{"unsent", collector.Flush{Unsent: 3}, []collector.Count{one}, true},
		{"held", collector.Flush{Held: 5}, []collector.Count{one}, true},
		{"still held", collector.Flush{Held: 5}, []collector.Count{one}, false},
		{"held no more", collector.Flush{}, []collector.Count{one}, true},
	} {
		g.send(step.flush, step.counts...)
		if step.beats {
			all(1)
		} else {
			want[home]++
		}
		if got := per(); got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("%s: records %v, want %v", step.name, got, want)
		}
	}
	time.Sleep(950 * time.Millisecond) // the flush of a tenth of a second later would be too late
	g.send(collector.Flush{}, one)
	all(1)
	if got := per(); got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("after a second: records %v, want %v", got, want)
	}
	g.conserved()
}

func TestOrigins(t *testing.T) {
	c := fake(t)
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs()))}
	g.connect()
	now := time.Now()
	sent := g.sink.SendOrigins(t.Context(), now, []collector.KeyOrigin{
		{Rule: []byte("terms"), Text: []byte("GET /search?q=a"), Kind: wire.Caller, Name: []byte("10.0.0.7"), N: 12},
		{Rule: []byte("unknown"), Text: []byte("x"), Kind: wire.Caller, Name: []byte("y"), N: 1},
	})
	if sent.Lines != 1 || sent.Failed != 0 {
		t.Errorf("%+v", sent)
	}
	g.drained()
	for _, r := range newReader(t, c.ListenAddrs()).atLeast(int(g.sink.Stats().Records)) {
		if r.value != "" {
			if want := "shop.terms.hot_origin.GET%20/search?q=a:12|c|#c:10%2E0%2E0%2E7"; r.value != want || r.partition != wire.Partition([]byte("GET%20/search?q=a"), 3) {
				t.Errorf("%d: %q", r.partition, r.value)
			}
			if r.Sent != now.UnixNano() {
				t.Errorf("sent at %v, want %v", time.Unix(0, r.Sent), now)
			}
		}
	}
	g.conserved()
}

// Counts that do not fit into one record are sent in several, and no buffer is mixed up with
// another.
func TestLargeFlush(t *testing.T) {
	t.Parallel()
	for _, compression := range []string{kafkasink.Zstd, kafkasink.LZ4, kafkasink.NoCompression} {
		t.Run(compression, func(t *testing.T) {
			c := fake(t)
			g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), func(c *kafkasink.Config) { c.Compression = compression }))}
			g.connect()
			long := strings.Repeat("x", 400)
			var want int64
			for range 4 {
				var counts []collector.Count
				for i := range 5000 {
					counts = append(counts, count("terms", fmt.Sprintf("GET /search?q=%s%d", long, i), int64(i+1)))
					want += int64(i + 1)
				}
				g.send(collector.Flush{}, counts...)
				g.send(collector.Flush{}, terms(10)...)
				want += 10
			}
			g.drained()
			got := newReader(t, c.ListenAddrs()).atLeast(int(g.sink.Stats().Records))
			if sum := seen(got); sum != want {
				t.Errorf("sum %d, want %d", sum, want)
			}
			inOrder(t, got)
			if s := g.conserved(); s.Delivered != want {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestStrangeCounts(t *testing.T) {
	c := fake(t)
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs()))}
	g.connect()
	sent := g.send(collector.Flush{},
		count("other", "GET /x", 2), count("terms", strings.Repeat("x", wire.MaxRecord), 3), count("terms", "GET /x", 4))
	if sent.Failed != 2 || sent.TooLong != 3 || sent.Lines != 1 || sent.Err == nil {
		t.Errorf("%+v", sent)
	}
	g.drained()
	if s := g.conserved(); s.Failed.NoRule != 2 || s.Failed.TooLong != 3 || s.Delivered != 4 {
		t.Errorf("%+v", s)
	}
}

// An urgent flush is sent without waiting for others.
func TestRecordLeavesAtOnce(t *testing.T) {
	c := fake(t)
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs()))}
	g.connect()
	g.send(collector.Flush{}, terms(10)...)
	g.drained()
	best := time.Hour
	for range 20 {
		began := time.Now()
		g.send(collector.Flush{}, terms(1)...)
		g.drained() // it polls every 2 ms
		best = min(best, time.Since(began))
	}
	if best > 20*time.Millisecond {
		t.Errorf("a record took %v at best to be delivered", best)
	}
	t.Log("at best", best)
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*kafkasink.Config){
		"Rules":             func(c *kafkasink.Config) { c.Rules = nil },
		"brokers":           func(c *kafkasink.Config) { c.Connection.Brokers = nil },
		"Topic":             func(c *kafkasink.Config) { c.Topic = "a b" },
		"Instance":          func(c *kafkasink.Config) { c.Instance = "a b" },
		"Idempotent":        func(c *kafkasink.Config) { c.Idempotent = true },
		"Acks":              func(c *kafkasink.Config) { c.Acks = "0" },
		"Compression":       func(c *kafkasink.Config) { c.Compression = "gzip" },
		"Buffer":            func(c *kafkasink.Config) { c.Buffer = 1 },
		"0.10.2 is too old": func(c *kafkasink.Config) { c.Connection.Version = "0.10.2" },
		"Version 1.1":       func(c *kafkasink.Config) { c.Connection.Version = "1.1" }, // no zstd
		"ca: open /none":    func(c *kafkasink.Config) { c.Connection.TLS = &kafka.TLS{CA: "/none"} },
		"password_env": func(c *kafkasink.Config) {
			c.Connection.SASL = &kafka.SASL{Mechanism: "PLAIN", User: "u", PasswordEnv: "NONE_SUCH"}
		},
		"Connection.Version": func(c *kafkasink.Config) { c.Connection.Version = "99.1.1.1" },
	} {
		if _, err := kafkasink.New(config([]string{"k:1"}, change)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := kafkasink.New(kafkasink.Config{Rules: testRules(), Connection: kafka.Connection{Brokers: []string{"k:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // it never ran
		t.Error(err)
	}
}

func TestVersions(t *testing.T) {
	for _, v := range []string{"2.1", "2.8.1", "3.6", "3.9", "4.0", "4.3.1"} {
		t.Run(v, func(t *testing.T) {
			c := fake(t)
			g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), func(c *kafkasink.Config) { c.Connection.Version = v }))}
			g.connect()
			g.send(collector.Flush{}, terms(10)...)
			g.drained()
			if s := g.conserved(); s.Delivered != 10 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// BenchmarkSend sends a flush with the largest number of lines to twelve partitions.
func BenchmarkSend(b *testing.B) {
	c := fake(b, kfake.SeedTopics(12, topic), kfake.BlackholeProduce())
	g := &giver{t: b, sink: newSink(b, config(c.ListenAddrs()))}
	g.connect()
	counts, flush := terms(2000), collector.Flush{Start: time.Now(), Held: 1}
	b.Run("send", func(b *testing.B) { // without the producer's part
		b.ReportAllocs()
		for b.Loop() {
			g.sink.Send(b.Context(), flush, counts)
			b.StopTimer()
			g.drained()
			b.StartTimer()
		}
	})
	b.Run("deliver", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.sink.Send(b.Context(), flush, counts)
			g.drained()
		}
	})
}

// Each record is signed together with its partition and its headers, and so are heartbeats. A
// reader that does not verify signatures reads them as before.
func TestRecordsAreSigned(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	c := fake(t)
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), func(c *kafkasink.Config) { c.Key = key }))}
	g.connect()
	g.send(collector.Flush{Start: time.Unix(1_700_000_000, 0), Held: 7, Aged: 9}, terms(100)...)
	g.drained()
	mac := wire.NewMAC(key)
	for _, r := range newReader(t, c.ListenAddrs()).atLeast(int(g.sink.Stats().Records)) {
		if err := mac.VerifyRecord(r.all, r.partition, []byte(r.value)); err != nil || !r.ours || time.Since(time.Unix(0, r.Sent)).Abs() > time.Minute {
			t.Errorf("a record of %+v: %v", r, err)
		}
		if mac.VerifyRecord(r.all, r.partition+1, []byte(r.value)) == nil {
			t.Error("it may stand in another partition")
		}
	}
}
