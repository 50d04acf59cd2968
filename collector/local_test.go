package collector

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// The sums are exact for the window that ends with the newest pane and for the one before it.
func TestPaneCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		panes := rapid.Int64Range(1, 12).Draw(t, "panes")
		r := newPaneCounts(panes)
		counts := make(map[int64]int64)
		pane := rapid.Int64Range(-20, 20).Draw(t, "first")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			pane += rapid.SampledFrom([]int64{0, 0, 1, 1, 2, panes, 3 * panes}).Draw(t, "pause")
			late := rapid.Int64Range(0, panes+1).Draw(t, "late")
			r.advance(pane)
			r.add(pane-late, 3)
			if late < panes {
				counts[pane-late] += 3
			}
			var sum, over int64
			for p := pane - panes; p <= pane; p++ {
				if p > pane-panes {
					sum += counts[p]
				}
				if p < pane {
					over += counts[p]
				}
			}
			if r.sum() != sum || r.previousSum() != over {
				t.Fatalf("pane %d: %d and %d, want %d and %d", pane, r.sum(), r.previousSum(), sum, over)
			}
		}
		r.add(pane-100*panes, 5)
		if r.sum() != 5 {
			t.Fatalf("%d after the clock was set back", r.sum())
		}
	})
}

// localLog is what OnLocal reported, in order.
type localLog struct{ lines []string }

func (l *localLog) add(h published.Hot, hot bool) {
	state := "cool"
	if hot {
		state = "hot"
	}
	l.lines = append(l.lines, fmt.Sprint(state, " ", h.Text, " ", h.Low))
	if !h.Local || h.High != published.Unknown || hot != h.Until.IsZero() {
		l.lines = append(l.lines, fmt.Sprintf("%+v", h))
	}
}

// A key is hot locally when its exact count over some window of panes reaches the threshold. It is
// reported with the flush that takes the decisive count.
func TestLocalHotIsExact(t *testing.T) {
	k := newKeys(3)
	rapid.Check(t, func(t *rapid.T) {
		per := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "window")
		n := rapid.Int64Range(1, 60).Draw(t, "threshold")
		c, err := New(Config{Sink: nowhere{}, Rules: ruled(over(n, per)), MaxKeys: 1})
		if err != nil {
			t.Fatal(err)
		}
		var l localLog
		c.OnLocal(l.add)
		w := rules.NewWindow(per)
		counts := make(map[int64]int64)
		now := time.Unix(1_700_000_000, 0)
		hot := false
		for range rapid.IntRange(1, 80).Draw(t, "flushes") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 1, 1, 3, 20}).Draw(t, "pause")) * base.FlushInterval)
			add := rapid.SampledFrom([]int64{0, 1, 2, 10, 25}).Draw(t, "n")
			k.add(c, 0, uint64(add))
			counts[w.Index(now)] += add
			var sum, stretch int64
			for p := w.Index(now) - int64(w.Panes) + 1; p <= w.Index(now); p++ {
				sum += counts[p]
				if p >= w.Index(now.Truncate(per)) {
					stretch += counts[p]
				}
			}
			c.Flush(t.Context(), now)
			told := len(l.lines) > 0 && l.lines[0] == fmt.Sprint("hot GET /search?q=0 ", sum)
			switch {
			case hot:
				return
			case told && sum < n:
				t.Fatalf("told %v, the count is %d of %d", l.lines, sum, n)
			case len(l.lines) > 0 && !told && sum < n:
				t.Fatalf("told %v, the count is %d of %d", l.lines, sum, n)
			case len(l.lines) == 0 && stretch >= n:
				t.Fatalf("not told, the count is %d of %d", stretch, n)
			}
			hot = len(l.lines) > 0
		}
	})
}

// A key cools once the count of a complete window is below the exit, and both the hold and the
// cool-down have passed.
func TestLocalHotCools(t *testing.T) {
	threshold := over(100, time.Second) // exit 80
	threshold.Hold, threshold.CoolDown = 2*time.Second, 500*ms
	ruleset := ruled(threshold)
	ruleset.Rules[0].Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 7}, Mode: rules.ModeLimit}
	c := newCollector(t, Config{Sink: nowhere{}, Rules: ruleset})
	k := newKeys(1)
	var all []published.Hot
	c.OnLocal(func(h published.Hot, hot bool) {
		if hot != h.Until.IsZero() {
			t.Errorf("hot %v: %+v", hot, h)
		}
		all = append(all, h)
	})
	epoch := time.Unix(1_700_000_000, 0)
	hot := []int64{}
	for i := range 70 {
		now := epoch.Add(time.Duration(i) * base.FlushInterval)
		switch {
		case i < 20:
			k.add(c, 0, 10) // 100 a second from flush 9 on
		case i < 40:
			k.add(c, 0, 8) // 80 a second: not below the exit
		case i < 60:
			k.add(c, 0, 7) // 79 in the window that ends with flush 40
		}
		c.Flush(t.Context(), now)
		hot = append(hot, c.Stats().Local)
	}
	var want []int64
	for i := range 70 {
		is := int64(0)
		if i >= 9 && i < 41+5 { // that window ends at flush 41
			is = 1
		}
		want = append(want, is)
	}
	if !slices.Equal(hot, want) {
		t.Errorf("hot at %v,\nwant   %v", hot, want)
	}
	key := rules.Key{Rule: "terms", Text: "GET /search?q=0"}
	since := epoch.Add(900 * ms)
	if len(all) != 2 || all[0] != (published.Hot{Key: key, Cause: published.CauseOf(&ruleset.Rules[0].Hot[0], rules.Requests), Low: 100, High: published.Unknown, Rate: 100, Since: since,
		Limit: ruleset.Rules[0].Limit.Rate, Burst: 7, Mode: rules.ModeLimit, Local: true}) ||
		!all[1].Until.Equal(epoch.Add(4600*ms)) || all[1].Key != key {
		t.Errorf("told %+v", all)
	}
	if len(c.local.free) != len(c.local.keys) {
		t.Error("the silent key is still counted")
	}
}

// Exceptions change the threshold and the limit of their keys, or exempt them. Thresholds that are
// not absolute cannot make a key hot on a single instance.
func TestLocalHotHeedsExceptionsAndKinds(t *testing.T) {
	share := over(10, time.Second)
	share.Kind, share.Factor = rules.Share, rules.Percent(20)
	ruleset := &rules.Rules{Rules: []rules.Rule{
		{ID: "terms", Hot: []rules.Threshold{over(100, time.Second), over(1000, time.Minute)}, Except: []rules.Exception{
			{Values: []rules.QueryMatch{{Name: "q", Value: "0"}}, Action: rules.Allow},
			{Values: []rules.QueryMatch{{Name: "q", Value: "1"}}, Rate: rules.Rate{N: 200, Per: time.Second}},
			{Values: []rules.QueryMatch{{Name: "q", Value: "2"}}, Rate: rules.Rate{N: 50, Per: time.Second}, Limit: &rules.Limit{Quota: rules.Quota{Burst: 3}, Mode: rules.ModeShadow}},
		}},
		{ID: "part", Hot: []rules.Threshold{share}},
	}}
	c := newCollector(t, Config{Sink: nowhere{}, Rules: ruleset})
	var l localLog
	c.OnLocal(l.add)
	k := newKeys(4)
	part := []byte("part GET /search?q=9")
	now := time.Unix(1_700_000_000, 0)
	for i := range 7 {
		for key := range 4 {
			k.add(c, key, 20)
		}
		c.Add(rules.Hash(part), part, 20)
		c.Flush(t.Context(), now)
		now = now.Add(base.FlushInterval)
		if i == 3 {
			slices.Sort(l.lines)
		}
	}
	want := []string{"hot GET /search?q=2 60", "hot GET /search?q=3 100"}
	if !slices.Equal(l.lines, want) {
		t.Errorf("told %q, want %q", l.lines, want)
	}
}

// A key is reported within 5 ms of the count that reaches the threshold. If the key is a burst, it
// is reported from the first flush on.
func TestLocalHotIsToldInMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, Config{Sink: nowhere{}, Rules: ruled(over(200, time.Second))})
		at := make(map[string]time.Duration)
		epoch := time.Now()
		c.OnLocal(func(h published.Hot, hot bool) { at[h.Text] = time.Since(epoch) })
		k := newKeys(2)
		run(t, c, func() {
			time.Sleep(10*ms + 1)
			k.add(c, 0, 200)
			for i := range 200 { // 1 each 0.2 ms: the last at 50 ms
				_ = i
				time.Sleep(200 * time.Microsecond)
				k.add(c, 1, 1)
			}
			time.Sleep(10 * ms)
		})
		if got := at["GET /search?q=0"]; got != 10*ms+1 {
			t.Errorf("the burst was told after %v", got)
		}
		if got := at["GET /search?q=1"]; got < 50*ms || got > 55*ms+1 {
			t.Errorf("the other was told after %v", got)
		}
	})
}

// The number of keys that are counted exactly is bounded. The counts of the others are sent as
// usual.
func TestLocalsAreBounded(t *testing.T) {
	const n = maxLocalKeys + 100
	k := newKeys(n)
	c := newCollector(t, Config{Sink: nowhere{}, Rules: ruled(over(8, time.Second)), Budget: -1})
	now := time.Unix(1_700_000_000, 0)
	for range 2 {
		for i := range n {
			k.add(c, i, 8)
		}
		c.Flush(t.Context(), now)
		if s := c.Stats(); s.Local != maxLocalKeys || len(c.local.keys) != maxLocalKeys {
			t.Fatalf("%+v, %d counted", s, len(c.local.keys))
		}
		now = now.Add(base.FlushInterval)
	}
	c.Flush(t.Context(), now.Add(time.Hour))
	c.Flush(t.Context(), now.Add(2*time.Hour))
	if s := c.Stats(); s.Local != 0 || len(c.local.free) != maxLocalKeys || s.Counts != 2*8*n {
		t.Errorf("%+v, %d free", s, len(c.local.free))
	}
}
