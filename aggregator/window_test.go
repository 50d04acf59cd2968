package aggregator

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
)

// Under any budget, low ≤ truth ≤ high for each key that has an entry, truth ≤
// the bound of its cell for each that has none, and the entries stay within the
// budget.
func TestWindowBoundsHoldTheTruth(t *testing.T) {
	var evicted int64
	rapid.Check(t, func(t *rapid.T) {
		per := rapid.SampledFrom(testWindows).Draw(t, "window")
		const grace = 3
		shape := hotparam.NewWindow(per)
		budget := rapid.Int64Range(4_000, 40_000).Draw(t, "budget")
		w := newWindow(shape, grace, budget)
		keys := rapid.IntRange(1, 200).Draw(t, "keys")
		few := rapid.Bool().Draw(t, "equal hashes")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		zipf := rand.NewZipf(rnd, 1.1, 4, uint64(keys-1))
		truth := make(map[string][]stamped)
		hash := func(text string) uint64 {
			if few {
				return uint64(len(text)) << 32
			}
			return testHash(text)
		}
		pane := rapid.Int64Range(-100, 100).Draw(t, "start")
		check := func(last int64) {
			for text, counts := range truth {
				exact := sumPanes(shape, counts, last)
				i := w.find(hash(text), []byte(text))
				if i < 0 {
					hidden := int64(0)
					if w.cells != nil {
						hidden = w.cell(hash(text)).sum(last, int64(shape.Panes))
					}
					if exact > hidden {
						t.Fatalf("%s has no entry: truth %d, its cell holds %d", text, exact, hidden)
					}
				} else if low, high := w.bounds(i, last); low > exact || exact > high {
					t.Fatalf("%s: truth %d is not within %d to %d", text, exact, low, high)
				}
				if exact > w.floor() && i < 0 && last == w.now {
					t.Fatalf("%s has no entry: truth %d passes the floor %d", text, exact, w.floor())
				}
			}
		}
		for range rapid.IntRange(1, 300).Draw(t, "counts") {
			if rnd.IntN(6) == 0 {
				pane += int64(rnd.IntN(4))
			}
			text := strings.Repeat("k", rnd.IntN(3)+1) + fmt.Sprint(zipf.Uint64())
			n, at := int64(rnd.IntN(5)+1), pane-int64(rnd.IntN(grace+1))
			truth[text] = append(truth[text], stamped{shape.Start(at), n})
			i, low, end := w.add(hash(text), []byte(text), at, n)
			if exact := sumPanes(shape, truth[text], end); i >= 0 && low > exact {
				t.Fatalf("%s: low %d passes the truth %d", text, low, exact)
			}
			if w.used() > budget {
				t.Fatalf("%d bytes used of a budget of %d", w.used(), budget)
			}
		}
		check(w.now)
		check(w.now - grace)
		check(w.now + int64(rnd.IntN(shape.Panes)))
		evicted += w.evicted
	})
	if evicted == 0 {
		t.Error("nothing was ever evicted: the test shows little")
	}
}

// The highest count that add tells is that of some window of the model, and no
// window with the pane has more.
func TestWindowTellsTheHighestCountOfLateCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := hotparam.NewWindow(rapid.SampledFrom(testWindows).Draw(t, "window"))
		grace := rapid.Int64Range(1, 40).Draw(t, "grace")
		w := newWindow(shape, grace, 1<<20)
		var counts []stamped
		newest := rapid.Int64Range(-100, 100).Draw(t, "start")
		for range rapid.IntRange(1, 80).Draw(t, "counts") {
			newest += rapid.Int64Range(0, 3).Draw(t, "step")
			at := newest - rapid.Int64Range(0, grace).Draw(t, "late")
			n := rapid.Int64Range(1, 9).Draw(t, "n")
			counts = append(counts, stamped{shape.Start(at), n})
			_, low, end := w.add(1, []byte("k"), at, n)
			want := int64(0)
			for last := at; last < at+int64(shape.Panes); last++ {
				want = max(want, sumPanes(shape, counts, last))
			}
			if low != want || sumPanes(shape, counts, end) != want {
				t.Fatalf("add tells %d at %d, want %d", low, end, want)
			}
		}
	})
}

func TestWindowCountsWhatComesTooLate(t *testing.T) {
	w := newWindow(hotparam.NewWindow(time.Second), 5, 1<<20)
	w.add(1, []byte("k"), 100, 1)
	for _, pane := range []int64{100 - 15, 3, -1_000_000} {
		if i, _, _ := w.add(1, []byte("k"), pane, 2); i >= 0 {
			t.Errorf("a count of pane %d was taken at pane 100", pane)
		}
	}
	if i, low, _ := w.add(1, []byte("k"), 100-14, 1); i < 0 || low != 1 {
		t.Errorf("the oldest pane that is kept was not taken: low %d", low)
	}
	if w.late != 6 {
		t.Errorf("late is %d, want 6", w.late)
	}
}

// A pane that is full stays full, so that low stays below the truth.
func TestWindowPaneDoesNotOverflow(t *testing.T) {
	w := newWindow(hotparam.NewWindow(time.Second), 5, 1<<20)
	for range 3 {
		w.add(1, []byte("k"), 7, 1<<32-2)
	}
	if _, low, _ := w.add(1, []byte("k"), 7, 1<<40); low != 1<<32-1 {
		t.Errorf("low is %d, want %d", low, int64(1<<32-1))
	}
}

// Memory is what the budget says, whatever comes: long texts after short ones,
// short ones after long ones.
func TestWindowMemoryStaysWithinTheBudget(t *testing.T) {
	const budget = 4 << 20
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, per := range []time.Duration{time.Second, time.Hour} {
		before := heap()
		w := newWindow(hotparam.NewWindow(per), 21, budget)
		long := strings.Repeat("x", 480)
		worst := int64(0)
		for phase := range 4 {
			tail := long[:phase%2*len(long)]
			for i := range 50_000 {
				text := fmt.Appendf(nil, "%d %d %s", phase, i, tail)
				w.add(testHash(string(text)), text, int64(phase), 1)
				if used := w.used(); used > budget {
					t.Fatalf("%d bytes used", used)
				}
			}
			worst = max(worst, heap()-before)
		}
		t.Logf("window of %v: %d KiB of a budget of %d", per, worst>>10, budget>>10)
		if worst > budget*11/10 {
			t.Errorf("window of %v: the heap grew by %d KiB, the budget is %d", per, worst>>10, budget>>10)
		}
		runtime.KeepAlive(w)
	}
}

// Among many distinct keys, a key that becomes busy is counted from then
// on, and its neighbours are not.
func TestWindowFindsAKeyInAFlood(t *testing.T) {
	const budget = 256 << 10
	w := newWindow(hotparam.NewWindow(time.Second), 21, budget)
	var best int64
	for i := range 200_000 {
		text := fmt.Appendf(nil, "GET /search?q=%d", i)
		w.add(testHash(string(text)), text, int64(i/20_000), 1)
		if i > 100_000 && i%50 == 0 {
			_, low, _ := w.add(testHash("hot"), []byte("hot"), int64(i/20_000), 1)
			best = max(best, low)
		}
	}
	if w.evicted == 0 || w.used() > budget {
		t.Fatalf("evicted %d, used %d of %d", w.evicted, w.used(), budget)
	}
	if best < 1_600 {
		t.Errorf("the busy key was counted %d times, want nearly all of its 2,000", best)
	}
	counts := make([]int64, 0, w.live)
	for i := range w.n {
		if e, _ := w.at(int32(i)); e.used && string(e.text) != "hot" {
			counts = append(counts, e.sum)
		}
	}
	if most := slices.Max(counts); most != 1 {
		t.Errorf("a key that came once counts %d", most)
	}
}
