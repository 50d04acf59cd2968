package window

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// The bounds of a key after a save and resume contain the bounds without them. This holds whatever
// was lost, healed, held back and dropped before, and however often the window is resumed. The
// counts of keys that were not saved are unknown.
func TestResumedBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rules.NewWindow(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "window"))
		fresh := func() *Window {
			w := New(shape, 3, 1<<20)
			w.SetMissing(NewMissing(), 0)
			w.NameFrom(1)
			return w
		}
		text := []byte("GET /s?q=k")
		hash := rules.Hash(text)
		first := shape.Index(time.Unix(1_767_355_200, 0))
		w := fresh()
		w.Advance(first)
		span := int64(shape.Panes) + 3
		pane := func(name string) int64 { return first + rapid.Int64Range(0, span).Draw(t, name) }
		for id := range rapid.Uint64Range(0, 12).Draw(t, "steps") {
			n, from, to := rapid.Int64Range(1, 50).Draw(t, "n"), pane("from"), pane("to")
			from, to = min(from, to), max(from, to)
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0, 1:
				w.Add(hash, text, from, n)
			case 2:
				if w.missing.Heal(MissingKey{hash, 0}, shape.Start(from), shape.Start(to), n) {
					w.Add(hash, text, from, n)
				}
			case 3:
				w.missing.Add(decode.Gap{ID: id + 1, From: shape.Start(from), To: shape.Start(to), Loose: n})
			case 4:
				w.Conceal(from, n)
			}
		}
		w.Advance(first + span)
		w.SetHeld(rapid.Int64Range(0, 9).Draw(t, "held"), 0)
		i, _, _ := w.Add(hash, text, first+span, 1)
		resumed := w
		for range rapid.IntRange(1, 3).Draw(t, "restarts") {
			saved, ok := resumed.Save(resumed.Find(hash, text))
			if !ok {
				t.Fatal("not saved")
			}
			resumed = fresh()
			resumed.Advance(w.now)
			resumed.BeginAfter(w.now)
			if resumed.Resume(hash, text, &saved) < 0 {
				t.Fatal("no room")
			}
		}
		later := rapid.Int64Range(0, int64(shape.Panes)).Draw(t, "later")
		w.Advance(w.now + later)
		resumed.Advance(w.now)
		resumed.SetHeld(w.heldBack, 0)
		for end := first + span - 3; end <= w.now; end++ {
			low, high := w.Bounds(i, end)
			gotLow, gotHigh := resumed.Span(hash, text, end, int64(shape.Panes))
			if end-int64(shape.Panes)+1 <= w.now-w.ring {
				continue // it is not kept whole
			}
			if gotLow > low || gotHigh != published.Unknown && gotHigh < high-w.heldBack {
				t.Fatalf("the window that ends with pane %d has %d to %d, was to have %d to %d", end-first, gotLow, gotHigh, low, high)
			}
			if end <= first+span && gotHigh == published.Unknown {
				t.Fatalf("nothing is known of the window that ends with pane %d", end-first)
			}
			if _, other := resumed.Span(hash+1, []byte("other"), end, int64(shape.Panes)); other != published.Unknown && end < first+span {
				t.Fatal("another key is known")
			}
		}
		if low, high := resumed.Span(hash, text, w.now, math.MaxInt32); high != published.Unknown {
			t.Fatalf("more than was kept counts %d to %d", low, high)
		}
	})
}
