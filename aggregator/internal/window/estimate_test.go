package window

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// A key that had samples stays an estimate after its record of guesses was evicted.
func TestGuessesMakeRoom(t *testing.T) {
	for _, unseen := range []int64{0, 7} {
		w, hash := New(rules.NewWindow(time.Second), 20, 100_000), testHash("k")
		i, _, _ := w.Add(hash, []byte("k"), 5, 10)
		w.AddGuess(i, 5, unseen)
		w.evict(w.lookup(hash^guessHash, nil))
		w.Add(hash, []byte("k"), 6, 10)
		if low, isEstimate := w.seen(i, 6); !isEstimate || low > 20-unseen || low < 19-unseen {
			t.Errorf("%d were not seen: told as %d of 20, an estimate: %v", unseen, low, isEstimate)
		}
		if low, isEstimate := w.seen(i, 60); low != 0 || isEstimate {
			t.Errorf("later: %d, an estimate: %v", low, isEstimate)
		}
		if w.evicted != 0 || w.guesses != 0 {
			t.Errorf("%d keys and %d guesses", w.evicted, w.guesses)
		}
	}
}

// The reported seen count is never above the true one, under any budget, and equals it while there
// is room. Samples do not change how keys without samples are counted.
func TestSeenIsSeen(t *testing.T) {
	var evicted, estimates int64
	rapid.Check(t, func(t *rapid.T) {
		shape := rules.NewWindow(time.Second)
		roomy := rapid.Bool().Draw(t, "roomy")
		budget := rapid.Int64Range(3_000, 12_000).Draw(t, "budget")
		if roomy {
			budget = 1 << 20
		}
		w := New(shape, 20, budget)
		w.NameFrom(rapid.SampledFrom([]int64{1, 50, 1 << 40}).Draw(t, "names from"))
		type truth struct{ estimate, seen, sampled map[int64]int64 }
		keys := rapid.IntRange(1, 60).Draw(t, "keys")
		truths := make([]truth, keys)
		for k := range truths {
			truths[k] = truth{make(map[int64]int64), make(map[int64]int64), make(map[int64]int64)}
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		now := int64(1000)
		sum := func(of map[int64]int64, end int64) (n int64) {
			for p := end - int64(shape.Panes) + 1; p <= end; p++ {
				n += of[p]
			}
			return n
		}
		for range rapid.IntRange(1, 400).Draw(t, "counts") {
			now += int64(rnd.IntN(10) / 8 * rnd.IntN(5))
			if rnd.IntN(40) == 0 {
				now += int64(rnd.IntN(100))
			}
			if rnd.IntN(20) == 0 {
				w.Tidy()
			}
			k := rnd.IntN(keys)
			pane := max(now-int64(rnd.IntN(15)), w.now-w.ring+1)
			text := fmt.Appendf(nil, "k%d", k)
			seen, n := int64(1+rnd.IntN(9)), int64(0)
			if n = seen; k%3 > 0 && rnd.IntN(3) > 0 {
				n = seen * int64(1+rnd.IntN(20)) // a sample, which may by chance stand only for itself
				truths[k].sampled[pane]++
			}
			isSample := truths[k].sampled[pane] > 0
			truths[k].estimate[pane] += n
			truths[k].seen[pane] += seen
			i, _, _ := w.Add(testHash(string(text)), text, pane, n)
			if i >= 0 && (n > seen || isSample && k%3 > 0) {
				w.AddGuess(i, pane, n-seen)
			}
			for j := range truths {
				name := fmt.Appendf(nil, "k%d", j)
				i := w.Find(testHash(string(name)), name)
				if i < 0 {
					continue
				}
				for _, end := range []int64{w.now, w.now - 1, w.now - 7} {
					low, isEstimate := w.seen(i, end)
					exact := sum(truths[j].seen, end)
					if low > exact {
						t.Fatalf("k%d: %d are told as seen, %d were", j, low, exact)
					}
					if isEstimate {
						estimates++
					}
					if high, _ := w.Bounds(i, end); j%3 == 0 && (isEstimate || low != high) {
						t.Fatalf("k%d has no samples: %d, %v", j, low, isEstimate)
					}
					if sampled := sum(truths[j].sampled, end) > 0; roomy && (low != exact || sampled && !isEstimate) {
						t.Fatalf("k%d: %d are told as seen, %d were; an estimate: %v, sampled: %v", j, low, exact, isEstimate, sampled)
					} else if !sampled && roomy && end == w.now && isEstimate {
						t.Fatalf("k%d is told as an estimate, and no sample is in the window", j)
					}
				}
			}
			if w.Used() > w.budget {
				t.Fatalf("%d bytes used of %d", w.Used(), w.budget)
			}
			if w.live != w.index.n || w.guesses < 0 || w.guesses > w.live {
				t.Fatalf("%d live, %d in the index, %d guesses", w.live, w.index.n, w.guesses)
			}
		}
		evicted += w.evicted
		w.Advance(now + 10*w.ring)
		for range 2 * sweeps {
			w.Tidy()
		}
		if w.live != 0 || w.guesses != 0 || w.arena.used != 0 {
			t.Fatalf("%d entries, %d guesses, %d units after all is over", w.live, w.guesses, w.arena.used)
		}
	})
	if !testing.Short() && (evicted == 0 || estimates == 0) {
		t.Errorf("%d evicted, %d estimates: the test tests too little", evicted, estimates)
	}
}
