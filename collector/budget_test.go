package collector

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// ruled returns rules with one rule, "terms", with these thresholds.
func ruled(hot ...rules.Threshold) *rules.Rules {
	return &rules.Rules{Rules: []rules.Rule{{ID: "terms", Hot: hot}}}
}

func over(n int64, per time.Duration) rules.Threshold {
	return rules.NewThreshold(rules.Rate{N: n, Per: per})
}

// ledger is a Sink that checks each flush against the adds recorded by the test.
type ledger struct {
	CountsOnly
	unsent map[string][]taken // takes by member, the oldest first
	sent   map[string]time.Time
	last   Flush
	lines  int
	sum    int64
	broken string
}

type taken struct {
	flush time.Time // the start of the flush that took it
	n     int64
}

func newLedger() *ledger {
	return &ledger{unsent: make(map[string][]taken), sent: make(map[string]time.Time)}
}

func (l *ledger) total(member string) (n int64) {
	for _, a := range l.unsent[member] {
		n += a.n
	}
	return n
}

func (l *ledger) Send(_ context.Context, f Flush, counts []Count) Sent {
	l.last, l.lines = f, len(counts)
	fail := func(format string, args ...any) { l.broken += fmt.Sprintf(format, args...) + "\n" }
	var before time.Time
	parts := make(map[string][2]int64) // held-back and newest counts
	for _, c := range counts {
		l.sum += c.N
		member := string(c.Rule) + " " + string(c.Text)
		start := c.Start
		part := parts[member]
		if start.IsZero() {
			start = f.Start
			part[1] += c.N
		} else {
			part[0] += c.N
			oldest := l.unsent[member][0].flush
			if age := f.Start.Sub(oldest); start.After(oldest) || start.Before(oldest.Add(-age/8-base.FlushInterval)) {
				fail("%s: the part of %v is sent as of %v", member, oldest, start)
			}
			if sent, ok := l.sent[member]; ok && start.Before(sent) {
				fail("%s: a part is of %v, before the last send at %v", member, start, sent)
			}
		}
		parts[member] = part
		if start.Before(before) {
			fail("%s: of %v, after one of %v", member, start, before)
		}
		before = start
	}
	for member, part := range parts {
		var want [2]int64
		for _, a := range l.unsent[member] {
			if a.flush.Equal(f.Start) {
				want[1] += a.n
			} else {
				want[0] += a.n
			}
		}
		if part != want {
			fail("%s: sent %v (held back, newest), want %v", member, part, want)
		}
		delete(l.unsent, member)
		l.sent[member] = f.Start
	}
	return Sent{Lines: int64(len(counts)), Packets: 1}
}

func (*ledger) Fit(text []byte) []byte { return text }
func (*ledger) Close() error           { return nil }

// For any adds, a flush keeps to the budget. It sends each key's counts wholly or not at all, each
// part with its own time, and leaves less than h of any key. h is the least that fits.
func TestBudget(t *testing.T) {
	k := newKeys(60)
	rapid.Check(t, func(t *rapid.T) {
		out := newLedger()
		budget := rapid.IntRange(1, 40).Draw(t, "budget")
		c, err := New(Config{Sink: out, Rules: ruled(over(1<<40, time.Hour)), Budget: budget, MaxKeys: 1 << 12})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1_700_000_000, 0)
		var added int64
		h := int64(1)
		for range rapid.IntRange(1, 12).Draw(t, "flushes") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 1, 1, 7, 300}).Draw(t, "pause")) * base.FlushInterval)
			for range rapid.IntRange(0, 120).Draw(t, "adds") {
				key, n := rapid.IntRange(0, 59).Draw(t, "key"), rapid.SampledFrom([]uint64{1, 1, 1, 2, 3, 40, 5_000}).Draw(t, "n")
				k.add(c, key, n)
				member := string(k.members[key])
				out.unsent[member] = append(out.unsent[member], taken{now, int64(n)})
				added += int64(n)
			}
			before := make(map[string]int64)
			cost := make(map[string]int)
			for member, adds := range out.unsent {
				before[member] = out.total(member)
				cost[member] = 1
				if !adds[0].flush.Equal(adds[len(adds)-1].flush) && adds[len(adds)-1].flush.Equal(now) {
					cost[member] = 2
				}
			}
			was := h
			out.lines, out.last = 0, Flush{}
			c.Flush(context.Background(), now)
			if out.broken != "" {
				t.Fatal(out.broken)
			}
			h = c.Stats().Held
			if told := out.last.Held; told != h && (told != 0 || h > 1 || was > 1) {
				t.Fatalf("h is %d after %d, and %d was told", h, was, told)
			}
			if out.lines > budget {
				t.Fatalf("%d lines, the budget is %d", out.lines, budget)
			}
			for member := range out.unsent {
				if n := out.total(member); n >= h {
					t.Fatalf("%d of %s are unsent, h is %d", n, member, h)
				}
			}
			least := 0
			for member, n := range before {
				if n >= h-1 {
					least += cost[member]
				}
			}
			if h > 1 && h < 1<<exactBits && least <= budget {
				t.Fatalf("h is %d, but %d would do with %d lines of %d", h, h-1, least, budget)
			}
			if s := c.Stats(); s.Counts+s.Unsent != added || s.Counts != out.sum {
				t.Fatalf("added %d, sent %d, stats %+v", added, out.sum, s)
			}
		}
	})
}

// When a flood ends, one flush sends its leftover counts up to the budget, and the following
// flushes send the rest.
func TestBudgetAdaptsWithinAFlush(t *testing.T) {
	const budget = 100
	k := newKeys(1_000)
	out := newLedger()
	c := newCollector(t, Config{Sink: out, Rules: ruled(over(1<<40, time.Minute)), Budget: budget})
	now := time.Unix(1_700_000_000, 0)
	var lines []int
	var held []int64
	flush := func(from, to int) {
		now = now.Add(base.FlushInterval)
		for i := from; i < to; i++ {
			k.add(c, i, 1)
			out.unsent[string(k.members[i])] = append(out.unsent[string(k.members[i])], taken{now, 1})
		}
		out.lines = 0
		c.Flush(t.Context(), now)
		lines, held = append(lines, out.lines), append(held, c.Stats().Held)
	}
	flush(0, 100)  // fits
	flush(0, 350)  // 1 of each: none fits
	flush(0, 50)   // 2 of 50, part of it older: 100 lines
	flush(50, 60)  // no flood: 80 lines are left for others
	flush(900, 95) // nothing new: 100 more
	flush(0, 0)    // the last
	flush(0, 0)
	if out.broken != "" {
		t.Fatal(out.broken)
	}
	if want := []int{100, 0, 100, 100, 100, 100, 10}; !slices.Equal(lines, want) {
		t.Errorf("sent %v lines, want %v", lines, want)
	}
	if want := []int64{1, 2, 2, 2, 2, 2, 1}; !slices.Equal(held, want) {
		t.Errorf("h was %v, want %v", held, want)
	}
	flush(0, 0)
	if len(out.unsent) != 0 || c.Stats().Unsent != 0 {
		t.Errorf("%d keys are still held back", len(out.unsent))
	}
}

// Counts held back for longer than the longest window are dropped and reported.
func TestWhatIsOlderThanTheWindowLeaves(t *testing.T) {
	out := newSums()
	c := newCollector(t, Config{Sink: out, Rules: ruled(over(1<<40, time.Second), over(1<<40, 2*time.Second)), Budget: 2})
	k := newKeys(4)
	now := time.Unix(1_700_000_000, 0)
	for i := range 40 {
		now = now.Add(base.FlushInterval)
		k.add(c, 0, 100)
		k.add(c, 1, 100) // these two take the whole budget
		if i == 0 {
			k.add(c, 2, 5)
			k.add(c, 3, 4)
		}
		c.Flush(t.Context(), now)
		want := Stats{Counts: 200 * int64(i+1), Unsent: 9, Held: 6}
		if i >= 20 {
			want.Unsent, want.Aged, want.Held = 0, 9, 1
		}
		if s := c.Stats(); s.Counts != want.Counts || s.Aged != want.Aged || s.Unsent != want.Unsent || s.Held != want.Held {
			t.Fatalf("flush %d: %+v", i, s)
		}
		if f := out.flushes[i]; f.Held != want.Held || f.Aged != 0 && i != 20 || f.Unsent != 0 {
			t.Fatalf("flush %d tells %+v", i, f)
		}
	}
	if aged := out.flushes[20].Aged; aged != 9 {
		t.Errorf("%d were told as aged", aged)
	}
}

func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a")>>1, rapid.Uint64().Draw(t, "b")>>1
		a >>= rapid.IntRange(0, 62).Draw(t, "shift a")
		b >>= rapid.IntRange(0, 62).Draw(t, "shift b")
		ba, bb := bucketOf(a), bucketOf(b)
		if a <= b && ba > bb || max(a, b) < 1<<exactBits && a != b && ba == bb {
			t.Fatalf("%d is in %d, %d in %d", a, ba, b, bb)
		}
	})
	var h histogram
	for n := range uint64(64) {
		h.add(1<<n, 2)
		if got := bucketOf(1<<n | (1<<n - 1)); got >= len(h.lines) {
			t.Fatalf("bucket %d of %d", got, len(h.lines))
		}
	}
	if bucket, over := h.lowestBucket(7); bucket != bucketOf(1<<60)+1 || over != 1 {
		t.Errorf("bucket %d, %d over", bucket, over)
	}
	h.reset()
	if bucket, over := h.lowestBucket(0); bucket != 0 || over != 0 || h != (histogram{}) {
		t.Errorf("bucket %d, %d over when empty", bucket, over)
	}
}

// A candidate is sent at each flush, however few new counts it has, while others with more unsent
// counts are held back. The aggregator sums what many instances count of it.
func TestCandidatesAreSentThroughAFlood(t *testing.T) {
	out := newLedger()
	c := newCollector(t, Config{Sink: out, Rules: ruled(over(400, time.Second)), Budget: 50})
	k := newKeys(1_001)
	candidate := string(k.members[0])
	now := time.Unix(1_700_000_000, 0)
	add := func(key int, n uint64) {
		k.add(c, key, n)
		out.unsent[string(k.members[key])] = append(out.unsent[string(k.members[key])], taken{now, int64(n)})
	}
	add(0, 150) // a quarter of the threshold makes a candidate
	c.Flush(t.Context(), now)
	for i := range 5 {
		now = now.Add(base.FlushInterval)
		add(0, 1)
		for other := 1; other <= 1_000; other++ {
			add(other, 3)
		}
		c.Flush(t.Context(), now)
		if held := c.Stats().Held; held <= 3 {
			t.Fatalf("flush %d: h is %d, others ought to be held back", i, held)
		}
		if n := out.total(candidate); n > 0 {
			t.Fatalf("flush %d: %d of a candidate are unsent", i, n)
		}
		if out.broken != "" {
			t.Fatal(out.broken)
		}
	}
}
