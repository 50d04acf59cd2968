package aggregator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/wire"
)

// A key is hot by what its samples stand for, and told by what was seen.
func TestSampledKeysAreEstimated(t *testing.T) {
	rule := hotRule("terms", 100, time.Second)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
	out, rules := newRecorder(), testRules(rule)
	detector, d := NewDetector(DetectorConfig{Rules: rules, Publisher: out}), decode.NewDecoder(rules, wire.Plain)
	key := hotparam.Key{Rule: "terms", Text: "k"}
	line := func(text string, at time.Duration) {
		d.Packet([]byte("shop.terms.hot_param."+text), noon.Add(at), detector)
	}
	for range 9 {
		line("k:1|c|@0.1", 0)
	}
	if len(out.hot()) > 0 {
		t.Fatal("hot at 90")
	}
	line("k:1|c|@0.1", 0)
	line("exact:99|c", 0)
	line("exact:1|c|@1", 0)
	h := out.hot()[key]
	if !h.Estimated || h.Low != 10 || h.High != hotparam.Unknown || h.Rate != 100 || h.Ratio != 1 {
		t.Errorf("hot as %+v, want 10 that were seen, of an estimate of 100/s", h)
	}
	if h := out.hot()[hotparam.Key{Rule: "terms", Text: "exact"}]; h.Estimated || h.Low != 100 || h.High != 100 {
		t.Errorf("a key without samples is hot as %+v", h)
	}
	// Exact counts beside samples are seen.
	line("k:50|c", 100*time.Millisecond)
	detector.AdvanceTo(noon.Add(200*time.Millisecond), noon.Add(200*time.Millisecond))
	detector.Refresh()
	told := func() hotparam.Hot {
		for _, h := range out.refresh[len(out.refresh)-1] {
			if h.Key == key {
				return h
			}
		}
		return hotparam.Hot{}
	}
	if h := told(); !h.Estimated || h.Low != 60 || h.High != hotparam.Unknown || h.Rate != 150 || h.Ratio != 1.5 {
		t.Errorf("told as %+v, want 60 that were seen of 150", h)
	}
	// No sample is in the window any more.
	for at := 200 * time.Millisecond; at <= 3*time.Second; at += 100 * time.Millisecond {
		line("k:20|c", at)
		detector.AdvanceTo(noon.Add(at), noon.Add(at))
	}
	detector.Refresh()
	if h := told(); h.Estimated || h.Low != 200 || h.High != 200 {
		t.Errorf("a window after the last sample it is told as %+v, want 200", h)
	}
	// Nor by one that comes late.
	line("k:1|c|@0.1", 1600*time.Millisecond)
	detector.Refresh()
	if h := told(); h.Estimated || h.Low != 200 || h.High != 200 {
		t.Errorf("after a late sample it is told as %+v, want 200", h)
	}
	// And samples that stand for no whole count yet are samples.
	line("k:9|c|@0.9", 3*time.Second)
	line("k:1|c|@0.99", 3*time.Second)
	detector.Refresh()
	if h := told(); !h.Estimated || h.Low != 210 {
		t.Errorf("told as %+v, want 210 that were seen", h)
	}
	// It cools by the estimate.
	line("k:79|c|@0.5", 5*time.Second)
	detector.AdvanceTo(noon.Add(5500*time.Millisecond), noon.Add(5500*time.Millisecond))
	if _, hot := out.hot()[key]; !hot {
		t.Error("cool at an estimate of 158")
	}
	detector.AdvanceTo(noon.Add(7*time.Second), noon.Add(7*time.Second))
	if _, hot := out.hot()[key]; hot {
		t.Error("still hot without counts")
	}
	cooled := out.changes[len(out.changes)-1].Cool
	if len(cooled) != 1 || cooled[0].High == hotparam.Unknown && !cooled[0].Estimated {
		t.Errorf("cooled as %+v", cooled)
	}
	if s := detector.Stats(); s.Keys > 2 {
		t.Errorf("guesses are told as keys: %+v", s)
	}
}

// A key that had samples is an estimate, though what is known of them made room.
func TestGuessesMakeRoom(t *testing.T) {
	for _, unseen := range []int64{0, 7} {
		w, hash := newWindow(hotparam.NewWindow(time.Second), 20, 100_000), testHash("k")
		i, _, _ := w.add(hash, []byte("k"), 5, 10)
		w.guess(i, 5, unseen)
		w.evict(w.lookup(hash^guessHash, nil))
		w.add(hash, []byte("k"), 6, 10)
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

// Shards hear of samples, whether a reader works for them or not.
func TestShardsHearOfSamples(t *testing.T) {
	for _, behind := range []bool{false, true} {
		out, rules := newRecorder(), testRules(hotRule("terms", 10, time.Second))
		shards := newTestShards(2, out, rules)
		s, d := newFeeds(shards, rules)[0], decode.NewDecoder(rules, wire.Plain)
		var lines strings.Builder
		for k := range 20 {
			rate := ""
			if k%3 == 0 {
				rate = "|@0.25"
			}
			fmt.Fprintf(&lines, "shop.terms.hot_param.k%d:%d|c%s\n", k, 10+k, rate)
		}
		s.Begin()
		d.Packet([]byte(lines.String()), noon, s)
		s.End(noon, noon, behind)
		for _, shard := range shards {
			close(shard.queue)
			shard.run()
		}
		for k := range 20 {
			h := out.hot()[hotparam.Key{Rule: "terms", Text: fmt.Sprint("k", k)}]
			if h.Estimated != (k%3 == 0) || h.Low != int64(10+k) {
				t.Errorf("behind: %v: k%d is hot as %+v", behind, k, h)
			}
		}
		if n := d.Stats().Samples; n != 7 {
			t.Errorf("%d samples are told, want 7", n)
		}
	}
}

// What is told as seen was seen, under any budget, and is all of it while there is
// room. Keys without samples are counted as if there were none.
func TestSeenIsSeen(t *testing.T) {
	var evicted, estimates int64
	rapid.Check(t, func(t *rapid.T) {
		shape := hotparam.NewWindow(time.Second)
		roomy := rapid.Bool().Draw(t, "roomy")
		budget := rapid.Int64Range(3_000, 12_000).Draw(t, "budget")
		if roomy {
			budget = 1 << 20
		}
		w := newWindow(shape, 20, budget)
		w.nameFrom(rapid.SampledFrom([]int64{1, 50, 1 << 40}).Draw(t, "names from"))
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
				w.tidy()
			}
			k := rnd.IntN(keys)
			pane := max(now-int64(rnd.IntN(15)), w.now-w.ring+1)
			text := fmt.Appendf(nil, "k%d", k)
			seen, n := int64(1+rnd.IntN(9)), int64(0)
			if n = seen; k%3 > 0 && rnd.IntN(3) > 0 {
				n = seen * int64(1+rnd.IntN(20)) // by chance a sample that stands for itself
				truths[k].sampled[pane]++
			}
			isSample := truths[k].sampled[pane] > 0
			truths[k].estimate[pane] += n
			truths[k].seen[pane] += seen
			i, _, _ := w.add(testHash(string(text)), text, pane, n)
			if i >= 0 && (n > seen || isSample && k%3 > 0) {
				w.guess(i, pane, n-seen)
			}
			for j := range truths {
				name := fmt.Appendf(nil, "k%d", j)
				i := w.find(testHash(string(name)), name)
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
					if high, _ := w.bounds(i, end); j%3 == 0 && (isEstimate || low != high) {
						t.Fatalf("k%d has no samples: %d, %v", j, low, isEstimate)
					}
					if sampled := sum(truths[j].sampled, end) > 0; roomy && (low != exact || sampled && !isEstimate) {
						t.Fatalf("k%d: %d are told as seen, %d were; an estimate: %v, sampled: %v", j, low, exact, isEstimate, sampled)
					} else if !sampled && roomy && end == w.now && isEstimate {
						t.Fatalf("k%d is told as an estimate, and no sample is in the window", j)
					}
				}
			}
			if w.used() > w.budget {
				t.Fatalf("%d bytes used of %d", w.used(), w.budget)
			}
			if w.live != w.index.n || w.guesses < 0 || w.guesses > w.live {
				t.Fatalf("%d live, %d in the index, %d guesses", w.live, w.index.n, w.guesses)
			}
		}
		evicted += w.evicted
		w.advance(now + 10*w.ring)
		for range 2 * sweeps {
			w.tidy()
		}
		if w.live != 0 || w.guesses != 0 || w.arena.used != 0 {
			t.Fatalf("%d entries, %d guesses, %d units after all is over", w.live, w.guesses, w.arena.used)
		}
	})
	if evicted == 0 || estimates == 0 {
		t.Errorf("%d evicted, %d estimates: the test tests too little", evicted, estimates)
	}
}
