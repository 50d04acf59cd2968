package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A resumed history bounds a key correctly, however often it was saved and resumed and whatever
// was lost, healed and dropped before. Its bounds are known from the first window on.
func TestResumedHistoriesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rules.NewWindow(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "window"))
		of := int64(shape.Panes)
		first := shape.Index(time.Unix(1_767_355_200, 0)) + rapid.Int64Range(0, of).Draw(t, "begin")
		text := []byte("GET /s?q=k")
		hash := rules.Hash(text)
		fresh := func(now int64) (*Window, *History) {
			w, h := New(shape, 3, 1<<20), NewHistory(shape, 3, 1<<20)
			m := NewMissing()
			w.SetMissing(m, 0)
			h.SetMissing(m, 0)
			w.NameFrom(1)
			w.Advance(now)
			h.AdvanceTo(shape.Start(now), now)
			return w, h
		}
		truth := make(map[int64]int64)
		w, h := fresh(first)
		now, began, id := first, first, uint64(0)
		add := func(pane, n int64) {
			w.Add(hash, text, pane, n)
			h.Count(&decode.Count{Hash: hash, Text: text, N: n, When: shape.Start(pane)})
		}
		phase := func(panes int64) {
			end := now + panes
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				n := rapid.Int64Range(1, 50).Draw(t, "n")
				from := rapid.Int64Range(now, end).Draw(t, "from")
				to := min(end, from+rapid.Int64Range(0, of).Draw(t, "span"))
				pane := rapid.Int64Range(from, to).Draw(t, "pane")
				w.Advance(from)
				h.AdvanceTo(shape.Start(from), from)
				truth[pane] += n
				switch rapid.IntRange(0, 5).Draw(t, "kind") {
				case 0, 1, 2:
					add(pane, n)
				case 3:
					if !w.Keeps(shape.Start(from)) {
						w.missing.RecordLack(MissingKey{hash, 0}, shape.Start(from), shape.Start(to), n)
					} else if w.missing.Heal(MissingKey{hash, 0}, shape.Start(from), shape.Start(to), n) {
						add(from, n)
					}
				case 4:
					id++
					w.missing.Add(decode.Gap{ID: id, From: shape.Start(from), To: shape.Start(to), Loose: n})
				case 5:
					w.Conceal(pane, n)
					h.Conceal(h.Index(shape.Start(pane)), n)
				}
			}
			now = end
			w.Advance(now)
			h.AdvanceTo(shape.Start(now), now)
		}
		judge := func(resumed bool) {
			i, _, _ := w.Add(hash, text, now, 0)
			w.GiveName(i, text, 1)
			for last := now - 2; last <= now; last++ {
				low, high, windows := h.Baseline(w, i, text, last, false)
				if high == published.Unknown {
					if resumed && now-began > 3*of {
						t.Fatalf("nothing is known at pane %d", last-first)
					}
					continue
				}
				sum, panes := int64(0), rules.ScaleUp(of, windows)
				for p := last - of; p > last-of-panes; p-- {
					sum += truth[p]
				}
				if low > sum || high < sum {
					t.Fatalf("%v windows before pane %d had %d, and are said to have %d to %d", windows, last-first, sum, low, high)
				}
			}
		}
		phase(rapid.Int64Range(0, 12*of).Draw(t, "before"))
		if rapid.Bool().Draw(t, "reload") { // the history is one of a new threshold
			_, h = fresh(now)
			h.SetMissing(w.missing, 0)
			h.BeginAt(now + 1)
			began = now
			phase(rapid.Int64Range(0, 12*of).Draw(t, "since"))
		}
		for range rapid.IntRange(1, 3).Draw(t, "restarts") {
			judge(false)
			i, _, _ := w.Add(hash, text, now, 0)
			h.Add(hash, text, h.Now(), 0)
			view, _ := w.Save(i)
			saved := h.Save(w, i)
			w, h = fresh(now)
			w.BeginAfter(now)
			h.Start(now)
			w.GiveName(w.Resume(hash, text, &view), text, 1)
			h.Resume(hash, text, saved)
			judge(saved != nil)
			phase(rapid.Int64Range(1, 3*of).Draw(t, "after"))
			judge(saved != nil)
		}
	})
}

// A history that was made when a rule changed has missed earlier counts, so it does not resume.
func TestHistoriesOfAReloadDoNotResume(t *testing.T) {
	shape := rules.NewWindow(time.Second)
	text := []byte("GET /s?q=k")
	hash := rules.Hash(text)
	w, h := New(shape, 3, 1<<20), NewHistory(shape, 3, 1<<20)
	for pane := int64(1); pane < 100; pane++ {
		w.Add(hash, text, pane, 5)
		h.AdvanceTo(shape.Start(pane), pane)
		h.Count(&decode.Count{Hash: hash, Text: text, N: 5, When: shape.Start(pane)})
	}
	saved := h.Save(w, w.Find(hash, text))
	for _, starts := range []bool{true, false} {
		fresh := h.Restart()
		fresh.AdvanceTo(shape.Start(99), 99)
		v := w.Restart()
		v.Advance(99)
		v.BeginAfter(99)
		if starts {
			fresh.Start(99)
		} else {
			fresh.BeginAt(100)
		}
		fresh.Resume(hash, text, saved)
		i, _, _ := v.Add(hash, text, 99, 5)
		if _, high, _ := fresh.Baseline(v, i, text, 99, true); (high != published.Unknown) != starts {
			t.Errorf("the baseline is at most %d if it starts with the process: %v", high, starts)
		}
	}
}
