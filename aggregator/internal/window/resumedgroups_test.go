package window

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// The bounds of totals after a save and resume contain the bounds without them. This holds
// whatever was lost, healed, held back, dropped, taken off or without room before, and however
// often they are resumed. If nothing was, both bounds are the same.
func TestResumedGroupsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rules.NewWindow(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "window"))
		const grace = 3
		panes := int64(shape.Panes) + grace
		budget := rapid.SampledFrom([]int64{1 << 20, 3 * (groupSize + 8*panes)}).Draw(t, "budget")
		fresh := func() (*Window, *Groups) {
			w := New(shape, grace, 1<<20)
			w.SetMissing(NewMissing(), 0)
			return w, NewGroups(panes, budget, false)
		}
		text := func(name string) []byte {
			return fmt.Appendf(nil, "GET /s?%c=k", 'a'+rapid.IntRange(0, 4).Draw(t, name))
		}
		w, g := fresh()
		first := shape.Index(time.Unix(1_767_355_200, 0))
		w.Advance(first)
		pane := func(name string) int64 { return first + rapid.Int64Range(0, panes).Draw(t, name) }
		exact := true
		for id := range rapid.Uint64Range(0, 14).Draw(t, "steps") {
			n, from, to, key := rapid.Int64Range(1, 50).Draw(t, "n"), pane("from"), pane("to"), text("key")
			from, to = min(from, to), max(from, to)
			kind := rapid.IntRange(0, 8).Draw(t, "kind")
			exact = exact && kind < 3
			switch kind {
			case 0, 1, 2:
				g.Add(key, from, n, decode.NotInGroup)
			case 3:
				g.Add(key, from, n, decode.MaybeInGroup)
			case 4:
				if w.missing.Heal(MissingKey{rules.Hash(key), 0}, shape.Start(from), shape.Start(to), n) {
					g.Add(key, from, n, decode.NotInGroup)
				}
			case 5:
				w.missing.Add(decode.Gap{ID: id + 1, From: shape.Start(from), To: shape.Start(to), Loose: n, HeldBack: n / 2})
			case 6:
				w.Conceal(from, n)
			case 7:
				g.Add(key, from, n, decode.NotInGroup)
				g.TakeOff(fmt.Appendf(nil, "GET /s?~again&%c", key[7]), from, n-n/2)
			case 8:
				g.AddNamed([]byte("*"), from, n)
			}
		}
		w.Advance(first + panes)
		cut := w.now
		resumed, totals := w, g
		for range rapid.IntRange(1, 3).Draw(t, "restarts") {
			newest := totals.Newest(resumed)
			saved := totals.Save(resumed, newest)
			resumed, totals = fresh()
			resumed.Advance(cut)
			resumed.BeginAfter(cut)
			totals.Resume(resumed, saved, newest)
		}
		w.Advance(cut + rapid.Int64Range(0, int64(shape.Panes)).Draw(t, "later"))
		resumed.Advance(w.now)
		for end := cut - grace; end <= w.now; end++ {
			for k := range 5 {
				key := fmt.Appendf(nil, "GET /s?%c=k", 'a'+k)
				low, high := g.Bounds(w, key, end)
				gotLow, gotHigh := totals.Bounds(resumed, key, end)
				if end-int64(shape.Panes) < cut-panes { // it is not kept whole
					continue
				}
				if gotLow > low || gotHigh != published.Unknown && gotHigh < high {
					t.Fatalf("%s in the window that ends with pane %d has %d to %d, was to have %d to %d", key, end-first, gotLow, gotHigh, low, high)
				}
				if exact && (gotLow != low || gotHigh != high) {
					t.Fatalf("%s in the window that ends with pane %d has %d to %d, was to have just %d to %d", key, end-first, gotLow, gotHigh, low, high)
				}
				if gotHigh == published.Unknown {
					t.Fatalf("nothing is known of the window that ends with pane %d", end-first)
				}
			}
		}
	})
}

// Groups that began after the process have missed earlier counts, so they do not resume.
func TestGroupsOfAReloadDoNotResume(t *testing.T) {
	shape := rules.NewWindow(time.Second)
	w := New(shape, 3, 1<<20)
	w.Advance(100)
	w.BeginAfter(100)
	before, g := NewGroups(13, 1<<20, false), NewGroups(13, 1<<20, false)
	before.Add([]byte("GET /s?q=1"), 100, 8, decode.NotInGroup)
	g.BeginAfter(100)
	g.Resume(w, before.Save(w, 100), 100)
	if low, high := g.Bounds(w, []byte("GET /s?q=1"), 100); low != 0 || high != published.Unknown {
		t.Errorf("%d to %d, want nothing known", low, high)
	}
}

// If there are more groups than a snapshot has room for, the smallest count as strays.
func TestSavedGroupsAreBounded(t *testing.T) {
	shape := rules.NewWindow(time.Second)
	w := New(shape, 3, 1<<20)
	w.Advance(100)
	g, resumed := NewGroups(13, 1<<20, false), NewGroups(13, 1<<20, false)
	const all = 2 * savedGroups
	sum := int64(0)
	for i := range all {
		g.Add(fmt.Appendf(nil, "GET /%d?q=1", i), 100, int64(i+1), decode.NotInGroup)
		if i < all-savedGroups {
			sum += int64(i + 1)
		}
	}
	resumed.Resume(w, g.Save(w, 100), 100)
	low, high := resumed.Bounds(w, fmt.Appendf(nil, "GET /%d?q=2", all-1), 100)
	if low != all || high != all+sum || len(resumed.byName) != savedGroups {
		t.Errorf("the largest of %d groups has %d to %d, want %d to %d", len(resumed.byName), low, high, all, all+sum)
	}
}
