package demo

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// epoch is the first instant of a pane.
var epoch = time.Unix(1_500_000_000, 0)

const ms = time.Millisecond

func newTestExact() *exact {
	threshold := rules.NewThreshold(rules.Rate{N: 10, Per: time.Second})
	return newExact(&threshold, Instances)
}

// arrive records n requests of a key, one every step.
func arrive(e *exact, key string, from time.Time, n int, step time.Duration) (last time.Time) {
	for i := range n {
		last = from.Add(time.Duration(i) * step)
		e.arrived(key, last)
	}
	return last
}

func limit(e *exact, key string, since, at time.Time) {
	for i := range Instances {
		e.inForce(i, []middleware.HotKey{{Key: rules.Key{Rule: "company", Text: key}, Since: since}}, at.Add(time.Duration(i)*ms))
	}
}

// The peak is that of a count that forgets nothing.
func TestExactPeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newTestExact()
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			longest := rapid.SampledFrom([]int{1, 50, 150, 3000}).Draw(t, "longest")
			return time.Duration(rapid.IntRange(0, longest).Draw(t, "step")) * ms
		}), 1, 200).Draw(t, "steps")
		var panes []int64
		now, peak := epoch, 0
		for _, step := range steps {
			now = now.Add(step)
			e.arrived("k", now)
			panes = append(panes, now.UnixMilli()/100)
			in := 0
			for _, p := range panes {
				if p > panes[len(panes)-1]-10 {
					in++
				}
			}
			peak = max(peak, in)
			if k := e.keys["k"]; k.sum != int64(in) || k.peak != int64(peak) {
				t.Fatalf("after %v: sum %d, peak %d; want %d, %d", now.Sub(epoch), k.sum, k.peak, in, peak)
			}
		}
	})
}

func TestTimeToEnforce(t *testing.T) {
	e := newTestExact()
	crossed := arrive(e, "k", epoch, 10, 20*ms) // in the second pane
	arrive(e, "k", crossed.Add(ms), 5, ms)
	limit(e, "k", epoch.Add(100*ms), crossed.Add(60*ms))
	if want := []time.Duration{62 * ms}; !slices.Equal(e.waits, want) { // until the last instance
		t.Errorf("waits %v, want %v", e.waits, want)
	}
	if hot := e.hot(); len(hot) != 1 || hot[0].Key != "k" || hot[0].PeakRate != 15 {
		t.Errorf("hot: %+v", hot)
	}
	if e.settle(crossed.Add(time.Minute)); e.unenforced() != 0 {
		t.Errorf("unenforced: %d", e.unenforced())
	}
}

// The count that made a key hot may be placed in the pane before the one in which it arrived.
func TestFlushAcrossAnEdge(t *testing.T) {
	e := newTestExact()
	arrive(e, "k", epoch, 9, ms)
	crossed := arrive(e, "k", epoch.Add(101*ms), 1, 0)
	limit(e, "k", epoch, crossed.Add(10*ms))
	if want := []time.Duration{12 * ms}; !slices.Equal(e.waits, want) {
		t.Errorf("waits %v, want %v", e.waits, want)
	}
}

// The wait does not begin with an earlier crossing of the threshold, long before the count that
// made the key hot.
func TestOtherCrossing(t *testing.T) {
	e := newTestExact()
	arrive(e, "k", epoch, 10, 100*ms) // over it by the last pane, just so
	second := epoch.Add(5 * time.Second)
	crossed := arrive(e, "k", second, 10, ms)
	limit(e, "k", second, crossed.Add(30*ms))
	if want := []time.Duration{32 * ms}; !slices.Equal(e.waits, want) {
		t.Errorf("waits %v, want %v", e.waits, want)
	}
}

// A limit that arrives long after its window still counts, from the pane that it names.
func TestLateLimit(t *testing.T) {
	e := newTestExact()
	arrive(e, "k", epoch, 10, ms)
	arrive(e, "k", epoch.Add(5*time.Second), 1, 0)
	limit(e, "k", epoch, epoch.Add(6*time.Second))
	if len(e.waits) != 1 || e.waits[0] < 6*time.Second {
		t.Errorf("waits %v", e.waits)
	}
	if e.settle(epoch.Add(7 * time.Second)); e.unenforced() != 0 {
		t.Error("it is in force now")
	}
}

func TestUnenforced(t *testing.T) {
	tests := []struct {
		name string
		make func(e *exact)
		want int64
	}{
		{"never limited", func(e *exact) { arrive(e, "k", epoch, 10, ms) }, 1},
		{"on two of three", func(e *exact) {
			arrive(e, "k", epoch, 10, ms)
			e.inForce(0, []middleware.HotKey{{Key: rules.Key{Text: "k"}, Since: epoch}}, epoch.Add(50*ms))
			e.inForce(1, []middleware.HotKey{{Key: rules.Key{Text: "k"}, Since: epoch}}, epoch.Add(50*ms))
		}, 1},
		{"at the edge", func(e *exact) { arrive(e, "k", epoch, 10, 100*ms) }, 0},
		{"below", func(e *exact) { arrive(e, "k", epoch, 9, ms) }, 0},
		{"cooled and hot again", func(e *exact) {
			arrive(e, "k", epoch, 10, ms)
			limit(e, "k", epoch, epoch.Add(50*ms))
			for i := range Instances {
				e.inForce(i, nil, epoch.Add(3*time.Second))
			}
			arrive(e, "k", epoch.Add(4*time.Second), 10, ms)
		}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := newTestExact()
			test.make(e)
			e.settle(epoch.Add(10 * time.Second))
			if got := e.unenforced(); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
	t.Run("still has time", func(t *testing.T) {
		e := newTestExact()
		last := arrive(e, "k", epoch, 10, ms)
		if e.settle(last.Add(patience)); e.unenforced() != 0 {
			t.Error("counted though it had time")
		}
	})
}

// At least p in a hundred of any waits are at most the percentile, and fewer are below it.
func TestPercentiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newTestExact()
		waits := rapid.SliceOfN(rapid.Int64Range(0, 5000), 1, 300).Draw(t, "tenths of a millisecond")
		for _, w := range waits {
			e.enforced(time.Duration(w) * ms / 10)
		}
		got := e.percentiles()
		for p, v := range map[int]float64{50: *got.P50, 99: *got.P99} {
			most, below := 0, 0
			for _, w := range waits {
				if w <= int64(math.Round(v*10)) {
					most++
				}
				if w < int64(math.Round(v*10)) {
					below++
				}
			}
			if 100*most < p*len(waits) || 100*below >= p*len(waits) {
				t.Fatalf("p%d is %v: %d of %d are at most that, %d below", p, v, most, len(waits), below)
			}
		}
	})
	if got := newTestExact().percentiles(); got.P50 != nil || got.P99 != nil {
		t.Errorf("of nothing: %v", got)
	}
}
