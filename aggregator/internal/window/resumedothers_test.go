package window

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// Keys that were not saved never exceed the bound for other keys, after each restart and with any
// memory. This holds for keys with an entry, without one and without a text.
func TestOthersAreBounded(t *testing.T) {
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		shape := rules.NewWindow(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "window"))
		budget := rapid.SampledFrom([]int64{3000, 1 << 20}).Draw(t, "budget")
		fresh := func(now int64) *Window {
			w := New(shape, 3, budget)
			w.SetMissing(NewMissing(), 0)
			w.NameFrom(20)
			w.Advance(now)
			return w
		}
		now := shape.Index(time.Unix(1_767_355_200, 0))
		truth := make(map[string]map[int64]int64)
		texts := make([]string, 30)
		for i := range texts {
			texts[i] = fmt.Sprintf("GET /s?q=%d", i)
			truth[texts[i]] = make(map[int64]int64)
		}
		w := fresh(now)
		id := uint64(0)
		phase := func(panes int64) {
			for range panes {
				now++
				w.Advance(now)
				for range rapid.IntRange(0, 4).Draw(t, "counts") {
					text, n := rapid.SampledFrom(texts[:2+rapid.IntRange(0, 28).Draw(t, "of")]).Draw(t, "key"), rapid.Int64Range(1, 12).Draw(t, "n")
					pane := now - rapid.Int64Range(0, 2).Draw(t, "late")
					truth[text][pane] += n
					if rapid.IntRange(0, 15).Draw(t, "lost") > 0 {
						w.Add(rules.Hash([]byte(text)), []byte(text), pane, n)
						continue
					}
					id++
					w.missing.Add(decode.Gap{ID: id, From: shape.Start(pane), To: shape.Start(now), Loose: n})
				}
				if rapid.IntRange(0, 20).Draw(t, "names") == 0 {
					w.NameFrom(rapid.SampledFrom([]int64{5, 20, 40}).Draw(t, "from"))
				}
			}
		}
		judge := func(of string) {
			for end := now - 1; end <= now; end++ {
				unlisted := w.Unlisted(end)
				lacks := w.LacksAny(end)
				for text, counts := range truth {
					sum := int64(0)
					for p := end - int64(shape.Panes) + 1; p <= end; p++ {
						sum += counts[p]
					}
					hash := rules.Hash([]byte(text))
					low, high := w.Span(hash, []byte(text), end, int64(shape.Panes))
					if low > sum || high != published.Unknown && high < sum {
						t.Fatalf("%s: %s has %d, and is said to have %d to %d", of, text, sum, low, high)
					}
					if i := w.Find(hash, []byte(text)); i >= 0 && w.Name(i) != nil || unlisted == published.Unknown || lacks == published.Unknown || w.NamesRanOut(end) {
						continue
					}
					known++
					if most := w.names.unnamedFrom(w.now-w.ring) - 1 + w.FloorAt(end) + lacks + unlisted; sum > most {
						t.Fatalf("%s: %s has no text and %d, and is said to have at most %d", of, text, sum, most)
					}
				}
			}
		}
		phase(rapid.Int64Range(1, 2*int64(shape.Panes)).Draw(t, "before"))
		for range rapid.IntRange(1, 3).Draw(t, "restarts") {
			judge("before")
			old := w
			w = fresh(now)
			w.BeginAfter(now)
			most, saves := int64(0), rapid.Int64Range(1, 60).Draw(t, "saves from")
			old.Each(0, func(i int32) {
				n, text := old.Sum(i, old.Now()), old.Name(i)
				if n < saves {
					most = max(most, n)
					return
				}
				v, _ := old.Save(i)
				if at := w.Resume(old.Hash(i), text, &v); at >= 0 {
					w.GiveName(at, text, 20)
				}
			})
			others := old.SaveOthers(most)
			w.ResumeOthers(&others)
			judge("resumed")
			phase(rapid.Int64Range(1, int64(shape.Panes)).Draw(t, "after"))
			judge("after")
		}
	})
	if !testing.Short() && known == 0 {
		t.Error("nothing was known")
	}
}

// A saved key that has lost its entry may lack as much as the snapshot says about it.
func TestResumedKeysMayLoseTheirEntry(t *testing.T) {
	shape := rules.NewWindow(time.Second)
	w := New(shape, 3, 1<<20)
	w.Advance(100)
	w.BeginAfter(100)
	w.ResumeOthers(&snapshot.Bounds{Known: 91, Lacks: []snapshot.Lack{{From: 91, N: 7}}})
	if got := w.Unlisted(100); got != 7 {
		t.Errorf("other keys may have %d, want 7", got)
	}
	w.Resume(1, []byte("k"), &snapshot.Counted{WindowShape: snapshot.WindowShape{Newest: 100}, Bounds: snapshot.Bounds{Known: 90, Lacks: []snapshot.Lack{{From: 90, N: 50}}}})
	if got := w.Unlisted(100); got != 50 {
		t.Errorf("other keys may have %d, want 50", got)
	}
	w.Resume(2, []byte("l"), &snapshot.Counted{WindowShape: snapshot.WindowShape{Newest: 100}, Bounds: snapshot.Bounds{Known: 92}})
	if got := w.Unlisted(100); got != published.Unknown {
		t.Errorf("other keys may have %d, want it unknown", got)
	}
	if got := w.Unlisted(110); got != 0 {
		t.Errorf("other keys may have %d in a window that was heard whole", got)
	}
}
