package aggregator

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// skewedFlush is a sender's count in a flush, its true time, and the time where it is placed.
type skewedFlush struct {
	n            int64
	true, placed time.Time
	skew         time.Duration
}

// If senders' clocks are off, the bounds of a hot key still contain its true count in the window,
// whenever it became hot. If all clocks are good, the bounds are one number.
func TestBoundsHoldWhateverClocksAreWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var flushes []skewedFlush
		isGood := true
		senders := rapid.IntRange(1, 5).Draw(t, "senders")
		for s := range senders {
			skew := time.Duration(0)
			if rapid.Bool().Draw(t, fmt.Sprint(s, " is off")) {
				skew = time.Duration(rapid.IntRange(51, 250).Draw(t, "by ms")) * time.Millisecond * time.Duration(rapid.SampledFrom([]int{-1, 1}).Draw(t, "to"))
				isGood = false
			}
			really := time.Duration(float64(skew) * rapid.Float64Range(0, 1).Draw(t, "of that"))
			for i := range 60 {
				placed := noon.Add(time.Duration(i) * 100 * time.Millisecond)
				if n := rapid.Int64Range(0, 9).Draw(t, "n"); n > 0 {
					flushes = append(flushes, skewedFlush{n, placed.Add(really), placed, skew})
				}
			}
		}
		slices.SortStableFunc(flushes, func(a, b skewedFlush) int { return cmp.Compare(a.placed.UnixNano(), b.placed.UnixNano()) })
		per := time.Duration(rapid.IntRange(1, 3).Draw(t, "window")) * time.Second
		d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", rapid.Int64Range(1, 150).Draw(t, "threshold"), per)), Publisher: newRecorder()})
		check := func() {
			for _, w := range d.watches[0].hot {
				v := w.holder.view
				for last := v.Now() - 5; last <= v.Now(); last++ {
					truth, all := int64(0), int64(0)
					for _, f := range flushes {
						if f.placed.After(v.Start(v.Now() + 1).Add(-1)) {
							break // has not come
						}
						if pane := v.Index(f.true); pane <= last && pane > last-int64(v.Panes) {
							truth += f.n
						}
						all += f.n
					}
					h := w.describe(last)
					w.addSkew(&h, last)
					if h.Low > truth || h.High < truth || isGood && h.Low != h.High {
						t.Fatalf("%d to %d, really %d of %d, in the window that ends with pane %d, at %d", h.Low, h.High, truth, all, last, v.Now())
					}
				}
			}
		}
		for i, f := range flushes {
			if i > 0 && f.placed != flushes[i-1].placed {
				check()
			}
			d.Advance(f.placed)
			d.Count(decode.Count{Hash: 1, Text: []byte("GET /s?k=a"), N: f.n, When: f.placed, Skew: f.skew})
		}
		check()
	})
}

// If one clock of many is off, it widens the bounds by its own counts alone.
func TestOneClockWidensBoundsByItsCounts(t *testing.T) {
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 100, time.Second)), Publisher: newRecorder()})
	for i := range 50 {
		at := noon.Add(time.Duration(i) * 100 * time.Millisecond)
		d.Advance(at)
		for s, skew := range [...]time.Duration{0, 0, 0, 150 * time.Millisecond} {
			d.Count(decode.Count{Hash: 1, Text: []byte("GET /s?k=a"), N: 10, When: at, Instance: fmt.Sprint(s), Skew: skew})
		}
	}
	w := d.watches[0].hot[0]
	h := w.describe(w.holder.view.Now())
	w.addSkew(&h, w.holder.view.Now())
	// A count at the beginning of a pane may belong to the next one, 150 ms later.
	if h.Low != 390 || h.High != 410 {
		t.Errorf("bounds are %d to %d, want 390 to 410", h.Low, h.High)
	}
	later := noon.Add(10 * time.Minute)
	d.Advance(later)
	if most := d.watches[0].skew.rangeAt(later); most != (skewRange{}) {
		t.Errorf("the clock still matters by %v after it was last heard of", most)
	}
}

// The bounds of a key include the clocks from the first refresh on, although its counts were not
// recorded by sender before it was hot. The change that calls it hot has the counts that decided.
func TestFirstBoundsOfASkewedKey(t *testing.T) {
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 100, time.Second)), Publisher: out})
	for i := range 10 {
		at := noon.Add(time.Duration(i) * 100 * time.Millisecond)
		d.Advance(at)
		d.Count(decode.Count{Hash: 1, Text: []byte("GET /s?k=a"), N: 10, When: at, Skew: -150 * time.Millisecond})
	}
	if hot := out.hot()[rules.Key{Rule: "r", Text: "GET /s?k=a"}]; hot.Low != 100 || hot.Ratio != 1 {
		t.Errorf("hot with a low of %d and a ratio of %v, want 100 and 1", hot.Low, hot.Ratio)
	}
	d.Refresh()
	if hot := out.refresh[0][0]; hot.Low != 80 || hot.Ratio != 1 {
		t.Errorf("published with a low of %d and a ratio of %v, want 80, since 20 may be of before, and 1", hot.Low, hot.Ratio)
	}
}
