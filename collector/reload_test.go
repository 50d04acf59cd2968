package collector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// strict is a sink that depends on the rules: counts of a rule that it never had fail. It reads
// everything that a collector can send.
type strict struct {
	*sums
	known  map[string]bool
	failed int64
}

func newStrict(rules *rules.Rules) *strict {
	s := &strict{sums: newSums(), known: make(map[string]bool)}
	s.SetRules(rules)
	return s
}

func (s *strict) SetRules(rules *rules.Rules) {
	for _, r := range rules.Rules {
		s.known[r.ID] = true
	}
}

func (s *strict) Send(ctx context.Context, f Flush, counts []Count) Sent {
	sent := s.sums.Send(ctx, f, slices.DeleteFunc(slices.Clone(counts), func(c Count) bool { return !s.known[string(c.Rule)] }))
	for _, c := range counts {
		if !s.known[string(c.Rule)] {
			sent.Failed += c.N
		}
	}
	s.failed += sent.Failed
	return sent
}

func (s *strict) Capabilities() Capabilities { return Capabilities{Accounts: true, Groups: true} }

// drawRules draws rules with any of the ids, windows and kinds of thresholds.
func drawRules(t *rapid.T) *rules.Rules {
	ruleset := &rules.Rules{Namespace: "test"}
	for _, id := range []string{"a", "b", "c"} {
		if rapid.IntRange(0, 3).Draw(t, "without "+id) == 0 {
			continue
		}
		r := rules.Rule{ID: id, By: rules.By{Kind: rules.ByNames, Names: []rules.Param{{Name: "q"}}}}
		if rapid.Bool().Draw(t, "each") {
			r.By = rules.By{Kind: rules.ByEach}
		}
		for range rapid.IntRange(0, 3).Draw(t, "thresholds") {
			th := rules.NewThreshold(rules.Rate{N: rapid.Int64Range(1, 50).Draw(t, "n"), Per: rapid.SampledFrom([]time.Duration{10 * time.Second, time.Minute, time.Hour}).Draw(t, "window")})
			th.Kind = rapid.SampledFrom([]rules.ThresholdKind{rules.FixedRate, rules.Share, rules.Jump}).Draw(t, "kind")
			r.Hot = append(r.Hot, th)
		}
		if rapid.Bool().Draw(t, "exception") {
			r.Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "1"}}, Rate: rules.Rate{N: 7, Per: time.Minute}}}
		}
		ruleset.Rules = append(ruleset.Rules, r)
	}
	return ruleset
}

// While rules are replaced, each count is sent once, and the sums include all counts of keys that
// were added under a rule.
func TestReloadLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ruleset := drawRules(t)
		out := newStrict(ruleset)
		c, err := New(Config{Sink: out, Rules: ruleset, Budget: 8, MaxKeys: 16 * 16})
		if err != nil {
			t.Fatal(err)
		}
		added, byRule := make(map[string]int64), make(map[string]int64)
		now := time.Unix(1_000_000, 0)
		flush := func() {
			now = now.Add(10 * time.Millisecond) // no count is as old as a window
			c.Flush(context.Background(), now)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				ruleset = drawRules(t)
				c.Reload(ruleset)
			case 1:
				flush()
			case 2:
				key := rules.Key{Rule: "a", Text: "GET /s?q=1"}
				c.Steer(published.Fleet{Instances: rapid.IntRange(1, 9).Draw(t, "instances")}, []rules.Key{key}[:rapid.IntRange(0, 1).Draw(t, "hot")])
			default:
				if len(ruleset.Rules) == 0 {
					continue
				}
				r := rapid.SampledFrom(ruleset.Rules).Draw(t, "rule")
				member := fmt.Sprintf("%s GET /s?q=%d", r.ID, rapid.IntRange(0, 9).Draw(t, "value"))
				n := rapid.Uint64Range(1, 20).Draw(t, "n")
				c.Add(rules.Hash([]byte(member)), []byte(member), n)
				added[member] += int64(n)
				byRule[r.ID] += int64(n)
			}
		}
		for range 50 {
			flush()
		}
		if s := c.Stats(); out.failed != 0 || s.Unsent != 0 || s.Aged != 0 || s.Dropped.Sum() != 0 {
			t.Fatalf("failed %d, %+v", out.failed, s)
		}
		got := maps.Clone(out.counts)
		maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 }) // accounts alone
		if !maps.Equal(got, added) {
			t.Fatalf("sent %v, want %v", got, added)
		}
		for _, sum := range c.Counted() {
			r := ruleset.Rules[slices.IndexFunc(ruleset.Rules, func(r rules.Rule) bool { return r.ID == sum.Rule })]
			if !r.Overlaps() && sum.N > byRule[sum.Rule] {
				t.Fatalf("%+v, want at most what was added, %v", sum, byRule)
			}
		}
	})
}

// Keys of a new rule are added while the old rules' flush is made. Their counts wait for the new
// rules. Run this test with -race.
func TestReloadWhileFlushing(t *testing.T) {
	const all, adders = 60, 4
	set := func(n int) *rules.Rules {
		r := ruled(over(50, 10*time.Second))
		r.Rules[0].ID = fmt.Sprint("r", n)
		return r
	}
	out := newStrict(set(0))
	c := newCollector(t, Config{Sink: out, Rules: set(0)})
	var present atomic.Int64
	var added [all]atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range adders {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				n := present.Load()
				member := fmt.Appendf(nil, "r%d GET /s?q=%d", n, i%20)
				c.Add(rules.Hash(member), member, 1)
				added[n].Add(1)
			}
		})
	}
	reloads := make(chan struct{})
	go func() {
		defer close(reloads)
		for n := 1; n < all; n++ {
			time.Sleep(time.Millisecond)
			c.Reload(set(n))
			present.Store(int64(n))
		}
	}()
	now := time.Unix(1_000_000, 0)
	for done := false; !done; {
		now = now.Add(time.Millisecond)
		c.Flush(t.Context(), now)
		select {
		case <-reloads:
			done = true
		default:
		}
	}
	close(stop)
	wg.Wait()
	for range 100 {
		now = now.Add(time.Millisecond)
		c.Flush(t.Context(), now)
	}
	want := int64(0)
	for i := range added {
		want += added[i].Load()
	}
	got, _ := out.total()
	if got != want || out.failed != 0 {
		t.Errorf("sent %d and failed %d, want %d and 0: %+v", got, out.failed, want, c.Stats())
	}
	if last := c.Counted(); len(last) != 1 || last[0].N != added[all-1].Load() {
		t.Errorf("%+v, want %d", last, added[all-1].Load())
	}
}

// A key that is hot on this instance alone stays hot as long as the rules have a threshold for it,
// even with another window. It cools at once when its rule is removed.
func TestReloadKeepsLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(n int64, per time.Duration) *rules.Rules {
			th := over(n, per)
			th.Hold, th.CoolDown = time.Second, time.Second
			return ruled(th)
		}
		c := newCollector(t, Config{Sink: newSums(), Rules: with(100, 10*time.Second)})
		var hot atomic.Bool
		var last atomic.Pointer[published.Hot]
		c.OnLocal(func(h published.Hot, is bool) {
			hot.Store(is)
			last.Store(&h)
		})
		k := newKeys(1)
		ticks := func(n int) { // 20 a second
			for range n {
				k.add(c, 0, 1)
				time.Sleep(50 * time.Millisecond)
			}
		}
		run(t, c, func() {
			ticks(140)
			if !hot.Load() {
				t.Fatal("100 in 5 s are not hot by 100/10s")
			}
			for _, step := range []struct {
				n      int64
				per    time.Duration
				hot    bool
				cause  int64
				second int
			}{
				{150, 10 * time.Second, true, 150, 1},     // above the exit
				{30, 2 * time.Second, true, 30, 3},        // another window, which the count reaches
				{900, time.Minute, true, 900, 20},         // one that is not complete yet
				{5000, 10 * time.Second, false, 5000, 13}, // far above
				{20, 10 * time.Second, true, 20, 1},       // and lower again
			} {
				c.Reload(with(step.n, step.per))
				ticks(20 * step.second)
				if hot.Load() != step.hot || last.Load().Cause.Rate.N != step.cause {
					t.Errorf("%d/%v: hot %v by %+v", step.n, step.per, hot.Load(), last.Load().Cause)
				}
			}
			c.Reload(&rules.Rules{})
			ticks(2)
			if hot.Load() {
				t.Error("hot without a rule")
			}
		})
	})
}

// A rule's sum continues from version to version, even after a time without the rule.
func TestReloadKeepsSums(t *testing.T) {
	c := newCollector(t, Config{Sink: newSums(), Rules: ruled(over(10, time.Second))})
	k := newKeys(2)
	now := time.Unix(1_000_000, 0)
	want := int64(0)
	for i, rules := range []*rules.Rules{ruled(over(20, time.Minute)), {}, ruled(over(5, time.Second), over(9, time.Hour))} {
		k.add(c, i%2, 7)
		if i != 2 { // the rule is there
			want += 7
		}
		c.Flush(t.Context(), now)
		c.Reload(rules)
		now = now.Add(100 * time.Millisecond)
		c.Flush(t.Context(), now)
		if got := c.Counted(); len(got) != len(rules.Rules) || len(got) == 1 && got[0].N != want {
			t.Errorf("%d: %+v, want %d", i, got, want)
		}
	}
}

// A rule that counts in another unit starts from zero: counts in the old unit are not added.
func TestReloadUnit(t *testing.T) {
	ruleset := ruled(over(1000, 10*time.Second))
	out := newSums()
	c := newCollector(t, Config{Sink: out, Rules: ruleset, Budget: 1})
	k := newKeys(4)
	now := time.Unix(1_000_000, 0)
	for i := range 4 {
		k.add(c, i, 2)
	}
	c.Flush(t.Context(), now)
	bytes := ruled(over(1000, 10*time.Second))
	bytes.Rules[0].Count = rules.Bytes
	c.Reload(bytes)
	k.add(c, 0, 500)
	for range 3 {
		now = now.Add(100 * time.Millisecond)
		c.Flush(t.Context(), now)
	}
	s := c.Stats()
	if counted := c.Counted()[0].N; counted != 500 || s.Unsent != 0 || s.Counts+s.Aged != 508 || s.Aged == 0 {
		t.Errorf("counted %d, want 500; %+v", counted, s)
	}
}
