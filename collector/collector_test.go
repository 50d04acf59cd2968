package collector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// Many goroutines add while flushes run and tables are replaced. Each count is sent once, or
// reported as dropped.
func TestNoIncrementIsLost(t *testing.T) {
	const adders, adds, universe = 8, 20_000, 20_000
	k := newKeys(universe)
	for _, test := range []struct {
		name    string
		maxKeys int
		key     func(r *rand.Rand) func() int
		exact   bool // nothing may be dropped
	}{
		{"zipf in a roomy table", 1 << 16, zipfOf(universe), true},
		{"zipf in a table that is replaced all the time", 512, zipfOf(universe), false},
		{"few keys in the smallest table", 1, zipfOf(40), false},
		{"a flood of new keys", 2048, func(r *rand.Rand) func() int { return func() int { return r.IntN(universe) } }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := newSums()
			c := newCollector(t, Config{Sink: out, MaxKeys: test.maxKeys, Budget: -1})
			var running atomic.Int32
			running.Store(adders)
			added := make([]map[int]int64, adders)
			var wg sync.WaitGroup
			for a := range adders {
				wg.Go(func() {
					defer running.Add(-1)
					next := test.key(rand.New(rand.NewPCG(uint64(a), 1)))
					mine := make(map[int]int64)
					for i := range adds {
						key, n := next(), uint64(i%3+1)
						k.add(c, key, n)
						mine[key] += int64(n)
					}
					added[a] = mine
				})
			}
			for running.Load() > 0 {
				c.Flush(t.Context(), time.Now())
				runtime.Gosched()
			}
			wg.Wait()
			c.Flush(t.Context(), time.Now())
			c.Flush(t.Context(), time.Now()) // an empty flush

			var sum int64
			want := make(map[string]int64)
			for _, mine := range added {
				for key, n := range mine {
					want[string(k.members[key])] += n
					sum += n
				}
			}
			sent, unsent := out.total()
			stats := c.Stats()
			if sent+stats.Dropped.Sum() != sum {
				t.Errorf("added %d, sent %d, dropped %d: %d are missing", sum, sent, stats.Dropped.Sum(), sum-sent-stats.Dropped.Sum())
			}
			if stats.Counts != sent || unsent != stats.Dropped.TableFull || stats.Dropped.Sum() != stats.Dropped.TableFull {
				t.Errorf("sent %d, told as unsent %d, stats %+v", sent, unsent, stats)
			}
			if test.exact && unsent > 0 {
				t.Errorf("%d were dropped", unsent)
			}
			for member, n := range out.counts {
				if n > want[member] || unsent == 0 && n != want[member] {
					t.Errorf("%s: sent %d, added %d", member, n, want[member])
				}
			}
		})
	}
}

func zipfOf(keys uint64) func(*rand.Rand) func() int {
	return func(r *rand.Rand) func() int {
		z := rand.NewZipf(r, 1.1, 3, keys-1)
		return func() int { return int(z.Uint64()) }
	}
}

// For any order of adds and flushes, each flush sends exactly the counts added since the previous
// one, as long as the table has room.
func TestFlushSendsWhatWasAddedSinceTheLast(t *testing.T) {
	k := newKeys(300)
	rapid.Check(t, func(t *rapid.T) {
		out := newSums()
		c, err := New(Config{Sink: out, MaxKeys: rapid.SampledFrom([]int{1 << 12, 1 << 13}).Draw(t, "keys"), Budget: -1})
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]int64)
		for range rapid.IntRange(1, 30).Draw(t, "flushes") {
			clear(want)
			clear(out.counts)
			for range rapid.IntRange(0, 40).Draw(t, "adds") {
				key, n := rapid.IntRange(0, 299).Draw(t, "key"), rapid.Uint64Range(0, 1<<32-1).Draw(t, "n")
				k.add(c, key, n)
				if n > 0 {
					want[string(k.members[key])] += int64(n)
				}
			}
			c.Flush(context.Background(), time.Now())
			if fmt.Sprint(out.counts) != fmt.Sprint(want) {
				t.Fatalf("sent %v, want %v", out.counts, want)
			}
		}
	})
}

// Keys with equal hashes are distinguished by their bytes.
func TestEqualHashesAreDifferentKeys(t *testing.T) {
	out := newSums()
	c := newCollector(t, Config{Sink: out})
	for i := range 40 {
		for range i + 1 {
			c.Add(7, fmt.Append(nil, "r k", i), 1)
		}
	}
	c.Flush(t.Context(), time.Now())
	for i := range 40 {
		if n := out.counts[fmt.Sprint("r k", i)]; n != int64(i+1) {
			t.Errorf("key %d was counted %d times, want %d", i, n, i+1)
		}
	}
}

// Add does not keep the bytes that it is given.
func TestAddKeepsNoReference(t *testing.T) {
	out := newSums()
	c := newCollector(t, Config{Sink: out})
	member := []byte("r first")
	c.Add(1, member, 1)
	copy(member, "r other")
	c.Flush(t.Context(), time.Now())
	if out.counts["r first"] != 1 || len(out.counts) != 1 {
		t.Errorf("sent %v", out.counts)
	}
}

// A key that becomes hot after others have filled the table is counted from the next flush on, for
// as long as the flood lasts.
func TestAKeyThatBecomesHotInAFullTableIsCounted(t *testing.T) {
	const flood, rounds = 5_000, 20
	k := newKeys(flood * rounds)
	out := newSums()
	c := newCollector(t, Config{Sink: out, MaxKeys: 1024, Budget: -1})
	hot := []byte("terms hot")
	hash := rules.Hash(hot)
	var late int64
	for round := range rounds {
		for i := range flood {
			k.add(c, round*flood+i, 1)
			if round > 0 && i%10 == 0 {
				c.Add(hash, hot, 1)
			}
		}
		c.Flush(t.Context(), time.Now())
		if round == 2 {
			late = out.counts[string(hot)]
		}
	}
	if got, want := out.counts[string(hot)]-late, int64((rounds-3)*flood/10); got != want {
		t.Errorf("once it was known, the hot key was counted %d times, want %d", got, want)
	}
	if c.Stats().Dropped.TableFull == 0 {
		t.Error("the table was never full: the test shows little")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	c := newCollector(t, Config{Sink: nowhere{}, MaxKeys: 1 << 12, Budget: -1})
	before := heap()
	var member []byte
	for i := range 300_000 {
		member = fmt.Appendf(member[:0], "terms GET /search?q=%d", i)
		c.Add(rules.Hash(member), member, 1)
		if i%5_000 == 0 {
			c.Flush(t.Context(), time.Now())
		}
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("the heap grew by %d KiB over 300,000 keys", grown>>10)
	}
	runtime.KeepAlive(c)
}

// nowhere is a Sink that discards everything.
type nowhere struct{ CountsOnly }

func (nowhere) Send(_ context.Context, _ Flush, counts []Count) Sent {
	return Sent{Lines: int64(len(counts)), Packets: 1}
}
func (nowhere) Fit(text []byte) []byte { return text }
func (nowhere) Close() error           { return nil }

func TestAddDoesNotAllocate(t *testing.T) {
	k := newKeys(2_000)
	c := newCollector(t, Config{Sink: nowhere{}})
	next := 0
	add := func() { k.add(c, next%len(k.members), 1); next++ }
	if n := testing.AllocsPerRun(len(k.members)-1, add); n != 0 {
		t.Errorf("%v allocations for a new key", n)
	}
	c.Flush(t.Context(), time.Now())
	if n := testing.AllocsPerRun(len(k.members)-1, add); n != 0 {
		t.Errorf("%v allocations for a known key", n)
	}
	c.Flush(t.Context(), time.Now())
	if n := testing.AllocsPerRun(100, func() { add(); c.Flush(t.Context(), time.Time{}) }); n != 0 {
		t.Errorf("%v allocations a flush", n)
	}
}

// Run flushes where panes begin: at each multiple of 100 ms, and at the other panes of windows
// whose panes are not multiples of that. Each count has a start that is within its pane and not
// after the count.
func TestRunCutsWherePanesBegin(t *testing.T) {
	for _, test := range []struct {
		window time.Duration
		cuts   []time.Duration
	}{
		{time.Second, []time.Duration{0, 100e6, 200e6, 300e6, 400e6}},
		{12 * time.Second, []time.Duration{0, 100e6, 200e6, 300e6, 400e6}}, // panes of 200 ms
		{15 * time.Second, []time.Duration{0, 100e6, 200e6, 250e6, 300e6, 400e6, 500e6, 600e6}},
	} {
		t.Run(test.window.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, epoch := newSums(), time.Now()
				c := newCollector(t, Config{Sink: out, Rules: countedOver(test.window)})
				run(t, c, func() {
					for time.Since(epoch) < test.cuts[len(test.cuts)-1]+50*time.Millisecond {
						c.Add(1, []byte("r k"), 1)
						time.Sleep(5 * time.Millisecond)
					}
				})
				var starts []time.Duration
				for _, f := range out.flushes[1:] { // the first only shows that the instance lives
					starts = append(starts, f.Start.Sub(epoch))
				}
				if fmt.Sprint(starts) != fmt.Sprint(test.cuts) {
					t.Errorf("flushes start at %v, want %v", starts, test.cuts)
				}
			})
		})
	}
}

// The panes of 10 s windows are 166.666666 ms wide. No flush has counts of two of them.
func TestRunNeverStraddlesPanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12_345_678 * time.Nanosecond)
		w := rules.NewWindow(10 * time.Second)
		out := &stamps{}
		c := newCollector(t, Config{Sink: out, Rules: countedOver(10 * time.Second)})
		run(t, c, func() {
			for range 3_000 {
				member := fmt.Append(nil, "r ", time.Now().UnixNano())
				c.Add(rules.Hash(member), member, 1)
				time.Sleep(1_234_567 * time.Nanosecond)
			}
		})
		for _, s := range out.seen {
			if s.added.Before(s.start) || w.Index(s.added) != w.Index(s.start) {
				t.Fatalf("counted at %v, sent as of %v: panes %d and %d", s.added, s.start, w.Index(s.added), w.Index(s.start))
			}
			if s.sent.Sub(s.added) > base.FlushInterval {
				t.Fatalf("counted at %v, sent at %v", s.added, s.sent)
			}
		}
		if len(out.seen) != 3_000 {
			t.Errorf("%d counts came through", len(out.seen))
		}
	})
}

// A slow sink delays flushes, but no count is reported as younger than it is.
func TestStartIsNeverAfterACountWhenTheSinkIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stamps{slow: 470 * time.Millisecond}
		c := newCollector(t, Config{Sink: out})
		run(t, c, func() {
			for range 500 {
				member := fmt.Append(nil, "r ", time.Now().UnixNano())
				c.Add(rules.Hash(member), member, 1)
				time.Sleep(7 * time.Millisecond)
			}
		})
		for _, s := range out.seen {
			if s.added.Before(s.start) {
				t.Fatalf("counted at %v, sent as of %v", s.added, s.start)
			}
			if !s.told.Equal(s.sent) {
				t.Fatalf("sent at %v, and told to be at %v", s.sent, s.told)
			}
			if age := s.added.Sub(s.start); age > out.slow+base.FlushInterval {
				t.Fatalf("counted at %v, sent as of %v before", s.added, age)
			}
		}
		if len(out.seen) != 500 {
			t.Errorf("%d counts came through", len(out.seen))
		}
	})
}

// A Flush with a given time does not state when it is sent, since only its caller keeps the time.
func TestFlushDoesNotTellWhenItIsSent(t *testing.T) {
	out := &stamps{}
	c := newCollector(t, Config{Sink: out})
	member := []byte("r 1")
	c.Add(rules.Hash(member), member, 1)
	c.Flush(t.Context(), time.Unix(5, 0))
	if len(out.seen) != 1 || !out.seen[0].told.IsZero() {
		t.Errorf("%+v", out.seen)
	}
}

// stamps is a Sink for keys whose text is the time at which they were added.
type stamps struct {
	CountsOnly
	slow time.Duration
	seen []stamp
}

type stamp struct{ added, start, sent, told time.Time }

func (s *stamps) Send(_ context.Context, f Flush, counts []Count) Sent {
	for _, c := range counts {
		var ns int64
		_, _ = fmt.Sscan(string(c.Text), &ns)
		s.seen = append(s.seen, stamp{time.Unix(0, ns), f.Start, time.Now(), f.Now})
	}
	time.Sleep(s.slow)
	return Sent{}
}
func (*stamps) Fit(text []byte) []byte { return text }
func (*stamps) Close() error           { return nil }

// run runs a collector while f runs.
func run(t *testing.T, c *Collector, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	f()
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

func TestRunFlushesOnTheWayOutAndClosesTheSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newSums()
		c := newCollector(t, Config{Sink: out})
		run(t, c, func() {
			time.Sleep(time.Millisecond)
			c.Add(1, []byte("r k"), 3)
		})
		if out.counts["r k"] != 3 || out.closed != 1 {
			t.Errorf("sent %v, closed %d times", out.counts, out.closed)
		}
		c.Add(1, []byte("r k"), 1) // harmless
	})
}

func TestRunTellsTheErrorOfClose(t *testing.T) {
	broken := errors.New("broken")
	c := newCollector(t, Config{Sink: failing{error: broken}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); !errors.Is(err, broken) {
		t.Errorf("Run gives %v", err)
	}
}

type failing struct {
	CountsOnly
	error
}

func (f failing) Send(_ context.Context, _ Flush, counts []Count) (sent Sent) {
	for _, c := range counts {
		sent.Failed += c.N
	}
	sent.Err = f.error
	return sent
}
func (failing) Fit(text []byte) []byte { return text }
func (f failing) Close() error         { return f.error }

// A nearly full table is flushed at once, before the next cut.
func TestANearlyFullTableIsFlushedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Millisecond)
		k := newKeys(4_000)
		out := newSums()
		c := newCollector(t, Config{Sink: out, MaxKeys: 256, Budget: -1})
		begin := time.Now()
		run(t, c, func() {
			for i := range k.members {
				k.add(c, i, 1)
				synctest.Wait()
			}
			if time.Since(begin) != 0 {
				t.Error("time has passed")
			}
		})
		sent, _ := out.total()
		if dropped := c.Stats().Dropped.TableFull; dropped != 0 || sent != 4_000 {
			t.Errorf("sent %d, dropped %d; want all of 4,000 sent", sent, dropped)
		}
	})
}

func TestCollectorTellsFailuresOnce(t *testing.T) {
	c := newCollector(t, Config{Sink: failing{error: errors.New("no route")}})
	for range 3 {
		c.Add(1, []byte("r k"), 5)
		c.Flush(t.Context(), time.Now())
	}
	if s := c.Stats(); s.Dropped.SendError != 15 || s.Counts != 0 || s.Flushes != 3 {
		t.Errorf("stats %+v", s)
	}
}

func TestNewRefusesBadConfigs(t *testing.T) {
	for want, c := range map[string]Config{"Config.Sink": {}, "Config.MaxKeys": {Sink: nowhere{}, MaxKeys: -1}} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New gives %v, want an error about %s", err, want)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	const universe = 100_000
	k := newKeys(universe)
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 3, universe-1)
	order := make([]int, 1<<20)
	for i := range order {
		order[i] = int(z.Uint64())
	}
	c := newCollector(b, Config{Sink: nowhere{}, MaxKeys: 1 << 18})
	var from atomic.Uint64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := from.Add(1 << 17); pb.Next(); i++ {
			k.add(c, order[i%uint64(len(order))], 1)
		}
	})
}

func BenchmarkFlush(b *testing.B) {
	for _, n := range []int{0, 100, 10_000, 40_000} {
		b.Run(fmt.Sprint(n, " keys"), func(b *testing.B) {
			k := newKeys(max(1, n))
			c := newCollector(b, Config{Sink: nowhere{}})
			b.ReportAllocs()
			for b.Loop() {
				for i := range n {
					k.add(c, i, 1)
				}
				c.Flush(b.Context(), time.Time{})
			}
		})
	}
}

// countedOver returns rules with a window of d by which no key is ever hot.
func countedOver(d time.Duration) *rules.Rules {
	return &rules.Rules{Rules: []rules.Rule{{Hot: []rules.Threshold{rules.NewThreshold(rules.Rate{N: 1 << 40, Per: d})}}}}
}
