package kafkasource

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

func (w *watermark) hear(name string, start, heard float64) {
	w.record(after(heard), after(heard))
	w.sent(&wire.Meta{Instance: []byte(name), Incarnation: 1}, after(start), after(heard))
}

// readTo reads to the end each second.
func (w *watermark) readTo(from, to float64) {
	for s := from; s <= to; s++ {
		w.reached(after(s))
		w.advance(nil)
	}
}

func TestWatermark(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*watermark)
		want float64
	}{
		{"nothing is known", func(*watermark) {}, 0},
		{"the newest record of one", func(w *watermark) { w.hear("a", 9, 10); w.hear("a", 9.5, 10) }, 9.5},
		{"what was held back is older", func(w *watermark) { w.hear("a", 9, 10); w.hear("a", 4, 10) }, 9},
		{"the slower of two", func(w *watermark) { w.hear("a", 9, 10); w.hear("b", 7, 10) }, 7},
		{"a slow clock holds up no longer than the grace", func(w *watermark) { w.hear("slow", -100, 10); w.hear("a", 9, 10) }, 5},
		{"a silent one holds up no longer, either", func(w *watermark) { w.hear("b", 1, 1); w.hear("a", 29, 30) }, 25},
		{"one that is not heard when all is read has ended", func(w *watermark) {
			w.hear("b", 9, 10)
			for s := 10.5; s <= 21; s++ {
				w.hear("a", s-0.5, s)
				w.advance(nil)
			}
		}, 20},
		{"but not because the log said nothing", func(w *watermark) {
			w.hear("b", 9.1, 10)
			w.hear("a", 9.9, 10)
			w.reached(after(60))
			w.hear("a", 60, 61)
			w.reached(after(61.5))
		}, 56},
		{"it may still come while all is not read", func(w *watermark) {
			w.hear("b", 19.1, 20)
			w.hear("a", 19.9, 20)
			w.reached(after(29))
		}, 19.1},
		{"with none left the end counts, less the lag", func(w *watermark) { w.hear("a", 9, 10); w.readTo(10, 21) }, 20.75},
		{"with none at all, too", func(w *watermark) { w.record(after(3), after(3)); w.readTo(3, 15) }, 14.75},
		{"not while nobody could write", func(w *watermark) { w.hear("a", 9, 10); w.reached(after(60)); w.readTo(60, 70) }, 9},
		{"but then", func(w *watermark) { w.hear("a", 9, 10); w.reached(after(60)); w.readTo(60, 71) }, 70.75},
		{"but not at once", func(w *watermark) { w.record(after(3), after(3)); w.reached(after(5)) }, 0},
		{"records alone tell nothing of senders without headers", func(w *watermark) { w.record(after(100), after(100)) }, 0},
		{"a new life begins anew", func(w *watermark) {
			w.hear("a", 9, 10)
			w.sent(&wire.Meta{Instance: []byte("a"), Incarnation: 2}, after(8), after(10))
		}, 8},
		{"it never goes back", func(w *watermark) {
			w.hear("a", 9, 10)
			w.advance(nil)
			w.hear("b", 2, 10)
		}, 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWatermark(noon, 5*time.Second, 250*time.Millisecond)
			test.do(w)
			if got := w.advance(nil); !got.Equal(after(test.want)) {
				t.Errorf("complete at %v, want %v s", got.Sub(noon), test.want)
			}
		})
	}
}

func TestWatermarkOfOneThatIsHeardElsewhere(t *testing.T) {
	w := newWatermark(noon, 5*time.Second, 0)
	w.hear("a", 1, 1)
	for s := 1.0; s <= 29; s++ {
		w.reached(after(s))
		w.advance(map[string]time.Time{"a": after(s)})
	}
	w.reached(after(30))
	if got := w.advance(map[string]time.Time{"a": after(29)}); !got.Equal(after(1)) {
		t.Errorf("complete at %v, want it to stand still", got.Sub(noon))
	}
	if got := w.advance(map[string]time.Time{"a": after(19)}); !got.Equal(after(30)) {
		t.Errorf("complete at %v, want the end's", got.Sub(noon))
	}
}

// The watermark keeps its promises, for senders that come and go, are late and have slow clocks.
// It never goes back. It is delayed by no more than the grace while any instance is received.
// Nothing older than it comes from an instance that was live when it was set, whose clock is
// right, and that is less than the grace late.
func TestWatermarkKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const grace = 5 * time.Second
		w := newWatermark(noon, grace, 250*time.Millisecond)
		now := noon.Add(time.Minute)
		late := rapid.SliceOfN(rapid.IntRange(0, 4999), 1, 4).Draw(t, "late by ms")
		skew := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 7, 100}), len(late), len(late)).Draw(t, "slow by s")
		since := make(map[string]time.Time) // the watermark when a live instance was first received
		complete := w.advance(nil)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 10, 500, 1000, 12_000}).Draw(t, "passes ms")) * time.Millisecond)
			i := rapid.IntRange(-1, len(late)-1).Draw(t, "who")
			if name := fmt.Sprint(i); i < 0 {
				w.reached(now)
			} else {
				start := now.Add(-time.Duration(late[i])*time.Millisecond - time.Duration(skew[i])*time.Second)
				if first, live := since[name]; live && skew[i] == 0 && start.Before(complete) && complete.After(first) {
					t.Fatalf("%s: counts of %v, when all of before %v had come", name, start.Sub(noon), complete.Sub(noon))
				} else if !live {
					since[name] = complete
				}
				w.record(now, now)
				w.sent(&wire.Meta{Instance: []byte(name), Incarnation: 1}, start, now)
			}
			next := w.advance(nil)
			switch {
			case next.Before(complete):
				t.Fatalf("went back from %v to %v", complete.Sub(noon), next.Sub(noon))
			case next.After(now):
				t.Fatalf("complete at %v, and it is %v", next.Sub(noon), now.Sub(noon))
			case now.Sub(next) > grace && i >= 0:
				t.Fatalf("held up by %v", now.Sub(next))
			}
			complete = next
			for name := range since {
				if w.senders[name] == nil {
					delete(since, name)
				}
			}
		}
	})
}
