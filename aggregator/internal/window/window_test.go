package window

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// trial pairs a window with all counts that were added to it.
type trial struct {
	*rapid.T
	*Window
	shape  rules.Window
	grace  int64
	truth  map[string][]stamped
	pinned map[string]int32
}

func newTrial(t *rapid.T, budget int64) *trial {
	const grace = 3
	shape := rules.NewWindow(rapid.SampledFrom(testWindows).Draw(t, "window"))
	x := &trial{T: t, Window: New(shape, grace, budget), shape: shape, grace: grace,
		truth: make(map[string][]stamped), pinned: make(map[string]int32)}
	x.NameFrom(rapid.SampledFrom([]int64{1, 3, 20}).Draw(t, "names from"))
	return x
}

func (x *trial) count(text string, at, n int64) {
	x.truth[text] = append(x.truth[text], stamped{x.shape.Start(at), n})
	i, low, end := x.Add(testHash(text), []byte(text), at, n)
	if exact := sumPanes(x.shape, x.truth[text], end); i >= 0 && low > exact {
		x.Fatalf("%s: low %d passes the truth %d", text, low, exact)
	}
	if i >= 0 && low >= x.names.from && x.Name(i) != nil && string(x.Name(i)) != text {
		x.Fatalf("%s is called %q", text, x.Name(i))
	}
	if was, ok := x.pinned[text]; ok && was != i {
		x.Fatalf("%s was pinned as entry %d, and is %d", text, was, i)
	}
}

// check compares each key with its bounds in the window that ends with a pane.
func (x *trial) check(end int64) {
	x.Helper()
	floor := x.FloorAt(end)
	for text, counts := range x.truth {
		exact := sumPanes(x.shape, counts, end)
		low, high := x.Span(testHash(text), []byte(text), end, int64(x.shape.Panes))
		if low > exact || exact > high {
			x.Fatalf("%s: truth %d is not within %d to %d", text, exact, low, high)
		}
		if exact-low > floor {
			x.Fatalf("%s: low %d, truth %d: more is hidden than the floor %d", text, low, exact, floor)
		}
		if i := x.Find(testHash(text), []byte(text)); i >= 0 {
			if l, h := x.Bounds(i, end); l != low || h != high {
				x.Fatalf("%s: bounds %d to %d, span %d to %d", text, l, h, low, high)
			}
		} else if low > 0 {
			x.Fatalf("%s has no entry, and counts %d", text, low)
		}
	}
}

// checkParts compares the window's numbers of entries, blocks and texts with the reachable ones.
func (x *trial) checkParts() {
	x.Helper()
	entries, blocks, texts, bytes := 0, 0, 0, int64(0)
	for i := x.arena.next(0); i != 0; i = x.arena.next(i + 1) {
		e := x.arena.unit(i)
		entries++
		for at, more := x.oldest(e); more; {
			blocks++
			b := x.arena.unit(at)
			at, more = b[blockNext], at != e.hist()
		}
		if k := e[entryName]; k != 0 {
			texts++
			bytes += x.names.all[k-1].size()
			if x.names.all[k-1].entry != i {
				x.Fatalf("entry %d has the text of entry %d", i, x.names.all[k-1].entry)
			}
		}
	}
	if entries != x.live || entries != x.index.n || entries+blocks != x.arena.used {
		x.Fatalf("%d entries, %d blocks; live %d, in the index %d, used %d", entries, blocks, x.live, x.index.n, x.arena.used)
	}
	if texts+len(x.names.free) != len(x.names.all) || bytes != x.names.bytes || bytes > x.names.maxBytes {
		x.Fatalf("%d texts of %d bytes; %d free of %d, %d bytes of %d", texts, bytes, len(x.names.free), len(x.names.all), x.names.bytes, x.names.maxBytes)
	}
	if x.Used() > x.budget {
		x.Fatalf("%d bytes used of a budget of %d", x.Used(), x.budget)
	}
}

// Under any budget, low ≤ truth ≤ high for each key with or without an entry, and no key hides
// more than the floor. Pinned keys keep their entry and text, and the memory stays within the
// budget.
func TestWindowBoundsHoldTheTruth(t *testing.T) {
	var evicted, pinned int64
	rapid.Check(t, func(t *rapid.T) {
		x := newTrial(t, rapid.Int64Range(4_000, 40_000).Draw(t, "budget"))
		keys := rapid.IntRange(1, 400).Draw(t, "keys")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		zipf := rand.NewZipf(rnd, 1.1, 4, uint64(keys-1))
		pane := rapid.Int64Range(-100, 100).Draw(t, "start")
		for range rapid.IntRange(1, 600).Draw(t, "counts") {
			switch rnd.IntN(60) {
			case 0, 1, 2, 3, 4, 5, 6, 7:
				pane += int64(rnd.IntN(4))
			case 8:
				pane += int64(rnd.IntN(3 * x.shape.Panes))
			case 9:
				x.Tidy()
			case 10:
				x.NameFrom([]int64{1, 3, 20}[rnd.IntN(3)])
			case 11:
				for text, i := range x.pinned {
					x.Tie(i, nil)
					delete(x.pinned, text)
					break
				}
			}
			text := strings.Repeat("k", rnd.IntN(3)+1) + fmt.Sprint(zipf.Uint64())
			x.count(text, pane-int64(rnd.IntN(int(x.grace)+1)), int64(rnd.IntN(5)+1))
			if i := x.Find(testHash(text), []byte(text)); i >= 0 && len(x.pinned) < 5 && rnd.IntN(20) == 0 && x.Tie(i, &Tag{Pinned: true}) {
				x.pinned[text] = i
			}
			for text, i := range x.pinned {
				if string(x.Name(i)) != text || x.Tag(i) == nil {
					x.Fatalf("%s was pinned, and its entry is %q now", text, x.Name(i))
				}
			}
		}
		x.checkParts()
		x.check(x.now)
		x.check(x.now - x.grace)
		x.check(x.now + int64(rnd.IntN(x.shape.Panes)))
		evicted += x.evicted
		pinned += int64(len(x.pinned))
	})
	if !testing.Short() && (evicted == 0 || pinned == 0) {
		t.Errorf("%d evicted, %d pinned: the test shows little", evicted, pinned)
	}
}

// While nothing was displaced, all counts are exact.
func TestWindowIsExactWhileThereIsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTrial(t, 1<<20)
		pane := rapid.Int64Range(-100, 100).Draw(t, "start")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rapid.IntRange(1, 400).Draw(t, "counts") {
			pane += int64(rnd.IntN(4) / 3)
			x.count(fmt.Sprint("k", rnd.IntN(30)), pane-int64(rnd.IntN(int(x.grace)+1)), int64(rnd.IntN(5)+1))
		}
		for end := x.now - x.grace; end < x.now+int64(x.shape.Panes); end++ {
			for text, counts := range x.truth {
				panes := int64(1 + rnd.IntN(x.shape.Panes))
				low, high := x.Span(testHash(text), []byte(text), end, panes)
				exact := sumPanes(rules.Window{Pane: x.shape.Pane, Panes: int(panes)}, counts, end)
				if low != exact || high != exact {
					t.Fatalf("%s: %d to %d in %d panes, want %d", text, low, high, panes, exact)
				}
			}
		}
		x.checkParts()
	})
}

// The highest count that Add returns belongs to some window of the model, and no window with the
// pane has more.
func TestWindowTellsTheHighestCountOfLateCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rules.NewWindow(rapid.SampledFrom(testWindows).Draw(t, "window"))
		grace := rapid.Int64Range(1, 40).Draw(t, "grace")
		w := New(shape, grace, 1<<20)
		var counts []stamped
		newest := rapid.Int64Range(-100, 100).Draw(t, "start")
		for range rapid.IntRange(1, 80).Draw(t, "counts") {
			newest += rapid.Int64Range(0, 3).Draw(t, "step")
			at := newest - rapid.Int64Range(0, grace).Draw(t, "late")
			n := rapid.Int64Range(1, 9).Draw(t, "n")
			counts = append(counts, stamped{shape.Start(at), n})
			_, low, end := w.Add(1, []byte("k"), at, n)
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

// Held-back counts arrive as counts of the time of their oldest part. In any window, low is at
// most the true count and high at least the true count.
func TestWindowBoundsHoldWhatWasHeldBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rules.NewWindow(time.Second)
		const grace, instances = 12, 3
		w := New(shape, grace, 1<<20)
		h := rapid.Int64Range(2, 8).Draw(t, "h")
		w.heldBack = instances * 2 * (h - 1)
		type unsent struct{ since, n int64 }
		var held [instances]unsent
		var truth []stamped
		hash, text := testHash("k"), []byte("k")
		tell := func(at, n int64) {
			_, low, end := w.Add(hash, text, at, n)
			if exact := sumPanes(shape, truth, end); low > exact {
				t.Fatalf("low %d at %d passes the truth %d", low, end, exact)
			}
		}
		for pane := int64(0); pane < 60; pane++ {
			w.Advance(pane)
			for i := range held {
				n := rapid.Int64Range(0, 5).Draw(t, "n")
				truth = append(truth, stamped{shape.Start(pane), n})
				u := &held[i]
				if u.n+n < h && pane-u.since < grace-1 {
					if u.n == 0 {
						u.since = pane
					}
					u.n += n
					continue
				}
				if u.n > 0 {
					tell(u.since, u.n)
				}
				if n > 0 {
					tell(pane, n)
				}
				*u = unsent{since: pane}
			}
			for end := pane - 3; end <= pane; end++ {
				exact := sumPanes(shape, truth, end)
				if low, high := w.Span(hash, text, end, int64(shape.Panes)); low > exact || exact > high {
					t.Fatalf("at %d, window to %d: truth %d is not within %d to %d", pane, end, exact, low, high)
				}
			}
		}
	})
}

func TestWindowCountsWhatComesTooLate(t *testing.T) {
	w := New(rules.NewWindow(time.Second), 5, 1<<20)
	w.Add(1, []byte("k"), 100, 1)
	for _, pane := range []int64{100 - 15, 3, -1_000_000} {
		if i, _, _ := w.Add(1, []byte("k"), pane, 2); i >= 0 {
			t.Errorf("a count of pane %d was taken at pane 100", pane)
		}
	}
	if i, low, _ := w.Add(1, []byte("k"), 100-14, 1); i < 0 || low != 1 {
		t.Errorf("the oldest pane that is kept was not taken: low %d", low)
	}
	if w.late != 6 || w.counted != 2 {
		t.Errorf("late is %d, counted %d; want 6 and 2", w.late, w.counted)
	}
}

// A full pane stays full, so low stays below the truth and high is unknown.
func TestWindowPaneDoesNotOverflow(t *testing.T) {
	w := New(rules.NewWindow(time.Second), 5, 1<<20)
	for range 3 {
		w.Add(1, []byte("k"), 7, 1<<32-2)
	}
	i, low, _ := w.Add(1, []byte("k"), 7, 1<<40)
	if low != 1<<32-1 {
		t.Errorf("low is %d, want %d", low, int64(1<<32-1))
	}
	if _, high := w.Bounds(i, 7); high != published.Unknown {
		t.Errorf("high is %d, want it unknown", high)
	}
}

// When the clock jumps so far that the low halves of panes' numbers repeat, old counts do not pass
// for new ones.
func TestWindowForgetsAfterAJumpOfTheClock(t *testing.T) {
	for _, jump := range []int64{1<<31 + 1, 1 << 32, 1<<32 + 3, 1 << 40} {
		w := New(rules.NewWindow(time.Second), 5, 3_000)
		i, _, _ := w.Add(1, []byte("k"), 7, 5)
		w.Add(1, []byte("k"), 9, 5)
		w.Tie(i, &Tag{Pinned: true})
		for k := range uint64(200) {
			w.Add(k+2, []byte("x"), 9, 1)
		}
		if w.Floor() == 0 {
			t.Fatal("nothing is hidden: the test shows little")
		}
		w.Advance(9 + jump)
		if low, high := w.Bounds(i, w.now); low != 0 || high != 0 || w.Floor() != 0 || w.Tag(i) == nil {
			t.Errorf("a jump of %d: %d to %d, floor %d, watched %v", jump, low, high, w.Floor(), w.Tag(i))
		}
		if _, low, _ := w.Add(1, []byte("k"), 10+jump, 2); low != 2 {
			t.Errorf("a jump of %d: low is %d, want 2", jump, low)
		}
	}
}

// Keys with the same hash are distinguished by their texts.
func TestWindowTellsKeysOfOneHashApart(t *testing.T) {
	w := New(rules.NewWindow(time.Second), 5, 1<<20)
	for n := range int64(5) {
		for k := range 20 {
			i, low, _ := w.Add(7, fmt.Append(nil, "key", k), 3, int64(k+1))
			if want := (n + 1) * int64(k+1); low != want || string(w.Name(i)) != fmt.Sprint("key", k) {
				t.Fatalf("key%d is %q and counts %d, want %d", k, w.Name(i), low, want)
			}
		}
	}
}

// A key has its text from the line that brings it near a threshold until it is far from it, or
// until another key needs the room.
func TestWindowNames(t *testing.T) {
	w := New(rules.NewWindow(time.Second), 5, 80_000)
	w.NameFrom(10)
	i, _, _ := w.Add(1, []byte("a"), 0, 9)
	if w.Name(i) != nil || w.Tie(i, &Tag{}) {
		t.Error("a key far from the threshold has a text")
	}
	w.Add(1, []byte("a"), 1, 1)
	if string(w.Name(i)) != "a" {
		t.Errorf("it is called %q, want a", w.Name(i))
	}
	w.Tidy()
	if w.Name(i) == nil {
		t.Error("the text is gone while the count is there")
	}
	var near []int32
	w.Each(10, func(i int32) { near = append(near, i) })
	if !slices.Equal(near, []int32{i}) {
		t.Errorf("near are %v, want %d", near, i)
	}
	w.Each(11, func(i int32) { t.Errorf("%q counts 11", w.Name(i)) })

	long := strings.Repeat("x", 500)
	for k := range uint64(100) { // more than there is room for, and busier
		w.Add(k+2, fmt.Append(nil, long, k), 2, 20)
	}
	if w.Name(i) != nil || w.names.bytes < w.names.maxBytes/2 {
		t.Errorf("the least key has a text; %d bytes of %d are used", w.names.bytes, w.names.maxBytes)
	}
	w.Advance(14)
	w.Tidy()
	if w.names.bytes == 0 {
		t.Error("texts are gone while a window of the grace holds the counts")
	}
	w.Advance(17)
	w.Tidy()
	if w.names.bytes != 0 {
		t.Errorf("%d bytes of texts after all counts are gone", w.names.bytes)
	}
	w.Advance(40)
	for range sweeps + 1 {
		w.Tidy()
	}
	if w.live != 0 || w.arena.used != 0 {
		t.Errorf("%d entries, %d units after all is over", w.live, w.arena.used)
	}
}

// A key keeps its text as long as any kept window holds its counts, however long the grace is.
func TestWindowNamesOutliveTheWindow(t *testing.T) {
	const grace = 25
	w := New(rules.NewWindow(time.Second), grace, 80_000)
	w.NameFrom(10)
	i, _, _ := w.Add(1, []byte("a"), 0, 10)
	for now := range int64(w.Panes) + grace {
		w.Advance(now)
		w.Tidy()
		if string(w.Name(i)) != "a" {
			t.Fatalf("it is called %q in pane %d, want a: a window of the grace holds its counts", w.Name(i), now)
		}
	}
}

// A window that had no room for some keys' texts reports that it lacks texts until all counts of
// those keys have left.
func TestWindowKnowsThatNamesRanOut(t *testing.T) {
	w := New(rules.NewWindow(time.Second), 5, 80_000)
	w.NameFrom(10)
	long := strings.Repeat("x", 500)
	for k := range uint64(100) {
		w.Add(k+2, fmt.Append(nil, long, k), 2, 20)
	}
	for now := int64(3); now < 30; now++ {
		w.Advance(now)
		w.Tidy()
		if got, want := w.NamesRanOut(now), now-int64(w.Panes) < 2; got != want {
			t.Errorf("ran out in the window that ends with pane %d: %t, want %t", now, got, want)
		}
	}
}

// The memory stays within the budget for any input: long texts after short ones, short ones after
// long ones, and keys with many panes after keys with one.
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
		w := New(rules.NewWindow(per), 21, budget)
		long := strings.Repeat("x", 480)
		worst := int64(0)
		for phase := range 6 {
			tail := long[:phase%2*len(long)]
			for i := range 100_000 {
				text := fmt.Appendf(nil, "%d %d %s", phase%4, i%(100_000>>(3*(phase%3))), tail)
				w.Add(testHash(string(text)), text, int64(5*phase+i/20_000), 1)
				if used := w.Used(); used > budget {
					t.Fatalf("%d bytes used", used)
				}
			}
			worst = max(worst, heap()-before)
		}
		t.Logf("window of %v: %d KiB of a budget of %d, %d evicted", per, worst>>10, budget>>10, w.evicted)
		if worst > budget*11/10 || w.evicted == 0 {
			t.Errorf("window of %v: the heap grew by %d KiB, the budget is %d; %d evicted", per, worst>>10, budget>>10, w.evicted)
		}
		runtime.KeepAlive(w)
	}
}

// Among many distinct keys, a key that becomes busy is soon counted, and its neighbors are not.
func TestWindowFindsAKeyInAFlood(t *testing.T) {
	const budget = 256 << 10
	w := New(rules.NewWindow(time.Second), 21, budget)
	var best int64
	for i := range 200_000 {
		text := fmt.Appendf(nil, "GET /search?q=%d", i)
		w.Add(testHash(string(text)), text, int64(i/20_000), 1)
		if i > 100_000 && i%50 == 0 {
			_, low, _ := w.Add(testHash("hot"), []byte("hot"), int64(i/20_000), 1)
			best = max(best, low)
		}
	}
	if w.evicted == 0 || w.Used() > budget {
		t.Fatalf("evicted %d, used %d of %d", w.evicted, w.Used(), budget)
	}
	if floor := w.Floor(); best < 2_000-floor || floor > 250 {
		t.Errorf("the busy key was counted %d times of 2,000, the floor is %d", best, floor)
	}
	for i := w.arena.next(0); i != 0; i = w.arena.next(i + 1) {
		if n := w.Sum(int32(i), w.now); n != 1 && string(w.Name(int32(i))) != "hot" {
			t.Fatalf("a key that came once counts %d", n)
		}
	}
}
