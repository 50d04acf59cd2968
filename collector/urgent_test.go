package collector

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// arrivals is a Sink that records when counts of each key arrive.
type arrivals struct {
	CountsOnly
	mu    sync.Mutex
	epoch time.Time
	at    map[string][]time.Duration
	n     map[string]int64
	beats []time.Duration // flushes without counts
	told  []Flush
}

func newArrivals() *arrivals {
	return &arrivals{epoch: time.Now(), at: make(map[string][]time.Duration), n: make(map[string]int64)}
}

func (a *arrivals) Send(_ context.Context, f Flush, counts []Count) Sent {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := time.Since(a.epoch)
	for _, c := range counts {
		member := string(c.Rule) + " " + string(c.Text)
		a.at[member] = append(a.at[member], since)
		a.n[member] += c.N
	}
	if len(counts) == 0 {
		a.beats = append(a.beats, since)
	}
	a.told = append(a.told, f)
	return Sent{Lines: int64(len(counts)), Packets: 1}
}
func (*arrivals) Fit(text []byte) []byte { return text }
func (*arrivals) Close() error           { return nil }

// when returns the arrival times of a key's counts, and total their sum.
func (a *arrivals) when(member string) []time.Duration {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.at[member])
}

func (a *arrivals) total(member string) int64 {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n[member]
}

// silent returns the times of flushes without counts.
func (a *arrivals) silent() []time.Duration {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.beats)
}

// within returns how many counts of a key came in [from, to).
func (a *arrivals) within(member string, from, to time.Duration) (n int) {
	for _, at := range a.when(member) {
		if from <= at && at < to {
			n++
		}
	}
	return n
}

const ms = time.Millisecond

// The first candidate after a quiet time is sent at once. It is then sent every 5 ms for a second,
// and after that every 100 ms until its count has risen by another step.
func TestCandidatesAreUrgentForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys(2)
		key, cold := string(k.members[0]), string(k.members[1])
		out := newArrivals()
		c := newCollector(t, Config{Sink: out, Rules: ruled(over(4000, time.Second))}) // candidates from 1,000 on
		run(t, c, func() {
			time.Sleep(50*ms + 500*time.Microsecond)
			k.add(c, 0, 999)
			k.add(c, 1, 500)
			if len(out.when(cold)) > 0 || len(out.when(key)) > 0 {
				t.Error("what is no candidate was sent ahead of the flush")
			}
			k.add(c, 0, 1)
			if got := out.when(key); len(got) != 1 || got[0] != 50*ms+500*time.Microsecond || out.total(key) != 1000 || out.total(cold) != 0 {
				t.Errorf("at %v, %d and %d", got, out.total(key), out.total(cold))
			}
			for time.Since(out.epoch) < 3*time.Second {
				k.add(c, 0, 1)
				time.Sleep(ms)
			}
			if n := out.within(key, 60*ms, 1000*ms); n < 180 || n > 200 {
				t.Errorf("%d sends in the first second, want one each 5 ms", n)
			}
			if n := out.within(key, 1100*ms, 2000*ms); n > 10 {
				t.Errorf("%d sends in the next 0.9 s, want one each 100 ms", n)
			}
			if n := out.within(key, 2000*ms, 3000*ms); n > 10 {
				t.Errorf("%d sends in the third second, want one each 100 ms", n)
			}
			k.add(c, 0, 2500) // to 3,500: it rose by more than a step
			if got := out.when(key); got[len(got)-1] != 3000*ms+500*time.Microsecond {
				t.Errorf("the rise was sent at %v", got[len(got)-1])
			}
			for time.Since(out.epoch) < 3500*ms {
				k.add(c, 0, 1)
				time.Sleep(ms)
			}
			if n := out.within(key, 3001*ms, 3500*ms); n < 95 {
				t.Errorf("%d sends in 0.5 s after the rise, want one each 5 ms", n)
			}
		})
		if c.Stats().Urgent == 0 || out.n[cold] != 500 {
			t.Errorf("%+v, %v", c.Stats(), out.n)
		}
	})
}

// A key with a steady rate below the mark is sometimes a candidate, since the load that makes
// candidates overestimates its counts. That does not make it urgent again each time.
func TestASteadyKeyDoesNotStayUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys(1)
		key := string(k.members[0])
		out := newArrivals()
		c := newCollector(t, Config{Sink: out, Rules: ruled(over(4000, time.Second))}) // candidates from 1,000 on
		run(t, c, func() {
			for time.Since(out.epoch) < 12*time.Second {
				k.add(c, 0, 3)
				time.Sleep(4 * ms) // 750 a second
			}
		})
		if n := out.within(key, 2000*ms, 12000*ms); n > 110 {
			t.Errorf("%d sends in 10 s, want one each 100 ms", n)
		}
	})
}

// With urgent flushes off, nothing is sent between two cuts. A key that is known to be hot is not
// urgent either. A suspect is, from its first count on.
func TestWhoIsUrgent(t *testing.T) {
	for _, test := range []struct {
		name   string
		urgent time.Duration
		steer  func(c *Collector, key rules.Key)
		n      uint64
		want   bool
	}{
		{"candidate", 0, func(*Collector, rules.Key) {}, 1000, true},
		{"cold", 0, func(*Collector, rules.Key) {}, 998, false},
		{"off", -1, func(*Collector, rules.Key) {}, 1000, false},
		{"hot", 0, func(c *Collector, k rules.Key) { c.Steer(published.Fleet{}, []rules.Key{k}) }, 1000, false},
		{"suspect", 0, func(c *Collector, k rules.Key) { c.Steer(published.Fleet{Suspects: []rules.Key{k}}, nil) }, 1, true},
		{"of ten instances", 0, func(c *Collector, _ rules.Key) { c.Steer(published.Fleet{Instances: 10}, nil) }, 100, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKeys(1)
				key, _ := rules.ParseKey(string(k.members[0]))
				out := newArrivals()
				c := newCollector(t, Config{Sink: out, Rules: ruled(over(4000, time.Second)), Urgent: test.urgent})
				run(t, c, func() {
					k.add(c, 0, 1) // so that the slot is there when it is steered
					time.Sleep(150 * ms)
					test.steer(c, key)
					time.Sleep(100 * ms) // applied from the next flush on
					sends := len(out.when(key.String()))
					k.add(c, 0, test.n)
					if got := len(out.when(key.String())) > sends; got != test.want {
						t.Errorf("sent at once: %v, want %v", got, test.want)
					}
					time.Sleep(100 * ms)
					if n := out.total(key.String()); n != int64(test.n)+1 {
						t.Errorf("%d came", n)
					}
				})
			})
		})
	}
}

// Urgent and ordinary flushes together send each count once, within the budget. If none is held
// back, each count is sent with the time of its pane.
func TestUrgentFlushesAddUp(t *testing.T) {
	for _, budget := range []int{-1, 60} {
		t.Run(fmt.Sprint("budget ", budget), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testUrgentFlushesAddUp(t, budget) })
		})
	}
}

func testUrgentFlushesAddUp(t *testing.T, budget int) {
	k := newKeys(50)
	w := rules.NewWindow(10 * time.Second)
	out := &panes{counts: make(map[string]map[int64]int64), window: w}
	c := newCollector(t, Config{Sink: out, Rules: ruled(over(400, 10*time.Second)), Budget: budget})
	want := make(map[string]map[int64]int64)
	run(t, c, func() {
		for range 4_000 {
			// The adds avoid the instants of flushes, since counts at those may be in either flush.
			time.Sleep(1_234_567 * time.Nanosecond)
			i := int(time.Now().UnixNano() / 777 % 50)
			k.add(c, i, 3)
			member := string(k.members[i])
			if want[member] == nil {
				want[member] = make(map[int64]int64)
			}
			want[member][w.Index(time.Now())] += 3
		}
	})
	stats := c.Stats()
	if stats.Urgent < 50 {
		t.Errorf("only %d urgent flushes", stats.Urgent)
	}
	if budget > 0 && out.most > budget {
		t.Errorf("%d lines in 100 ms, the budget is %d", out.most, budget)
	}
	missing := int64(0)
	for member, byPane := range want {
		for _, n := range out.counts[member] {
			missing -= n
		}
		for pane, n := range byPane {
			missing += n
			if budget < 0 && n != out.counts[member][pane] {
				t.Errorf("%s: %d sent as of pane %d, added %d", member, out.counts[member][pane], pane, n)
			}
		}
	}
	if missing != stats.Unsent || stats.Aged != 0 {
		t.Errorf("%d are missing: %+v", missing, stats)
	}
}

// panes is a Sink that sums counts by pane, and finds the most lines sent in 100 ms.
type panes struct {
	CountsOnly
	window rules.Window
	counts map[string]map[int64]int64
	slot   int64
	lines  int
	most   int
}

func (p *panes) Send(_ context.Context, f Flush, counts []Count) Sent {
	if slot := (f.Start.UnixNano()) / int64(base.FlushInterval); slot != p.slot {
		p.slot, p.lines = slot, 0
	}
	p.lines += len(counts)
	p.most = max(p.most, p.lines)
	for _, c := range counts {
		member := string(c.Rule) + " " + string(c.Text)
		if p.counts[member] == nil {
			p.counts[member] = make(map[int64]int64)
		}
		start := c.Start
		if start.IsZero() {
			start = f.Start
		}
		p.counts[member][p.window.Index(start)] += c.N
	}
	return Sent{Lines: int64(len(counts)), Packets: 1}
}
func (*panes) Fit(text []byte) []byte { return text }
func (*panes) Close() error           { return nil }

// An idle instance sends an empty flush at its start and once a second to show that it lives. It
// also sends one after each send of counts, so that their loss is noticed.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newArrivals()
		c := newCollector(t, Config{Sink: out})
		k := newKeys(1)
		run(t, c, func() {
			time.Sleep(3500 * ms)
			if beats := out.silent(); len(beats) != 4 || beats[0] != 0 {
				t.Errorf("beats at %v in 3.5 s", beats)
			}
			for range 30 {
				k.add(c, 0, 1)
				time.Sleep(300 * ms)
			}
			beats, sends := out.silent()[4:], out.when(string(k.members[0]))
			if len(beats) != len(sends) {
				t.Fatalf("%d sends, %d beats", len(sends), len(beats))
			}
			for i := range sends {
				if beats[i] != sends[i]+base.FlushInterval {
					t.Errorf("sent at %v, silent at %v", sends[i], beats[i])
				}
			}
		})
	})
}

// A key that is no longer urgent becomes urgent again like any other once it has been silent or had
// a far lower rate.
func TestABurstAfterSilenceIsUrgent(t *testing.T) {
	for _, low := range []uint64{0, 1} { // counts each 100 ms in between
		synctest.Test(t, func(t *testing.T) {
			k := newKeys(1)
			out := newArrivals()
			c := newCollector(t, Config{Sink: out, Rules: ruled(over(4000, time.Second))})
			run(t, c, func() {
				for time.Since(out.epoch) < 3*time.Second { // at three times the mark
					k.add(c, 0, 3)
					time.Sleep(ms)
				}
				for time.Since(out.epoch) < 6*time.Second {
					if low > 0 {
						k.add(c, 0, low)
					}
					time.Sleep(100 * ms)
				}
				time.Sleep(7*ms + 300*time.Microsecond)
				before := out.total(string(k.members[0]))
				k.add(c, 0, 1500)
				time.Sleep(5 * ms)
				if got := out.total(string(k.members[0])) - before; got < 1500 {
					t.Errorf("with %d each 100 ms before: %d of the burst were sent within 5 ms, want all", low, got)
				}
			})
		})
	}
}
