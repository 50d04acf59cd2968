package aggregator

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
)

// However the counts are divided among readers, each count is in one shard once, and none is late
// while no reader lags by more than the grace. A key with steady counts never cools. A key whose
// counts stop cools once all readers have advanced the time.
func TestReadersShareTheShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := hotRule("terms", 10, time.Second)
		rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
		rules := testRules(rule)
		readers, parts := rapid.IntRange(1, 4).Draw(t, "readers"), rapid.IntRange(1, 3).Draw(t, "shards")
		out := newRecorder()
		var shards []*shard
		for range parts {
			shards = append(shards, newShard(NewDetector(DetectorConfig{Rules: rules, Publisher: out, Lag: decode.DefaultLag}), readers))
		}
		var running sync.WaitGroup
		for _, s := range shards {
			running.Go(s.run)
		}
		feeds := newFeeds(shards, rules)
		var decoders []*decode.Decoder
		for range feeds {
			decoders = append(decoders, decode.NewDecoder(rules, wire.Plain))
		}
		// The counts of each 100 ms, for 4 s, go to a random reader. No reader is more than 1.5 s
		// ahead of the slowest.
		const steps, step, lag = 40, 100 * time.Millisecond, 15
		brought := make([][]string, steps)
		by := make([]int, steps)
		at := make([]int, readers) // how far each has read
		sum := int64(0)
		for i := range steps {
			by[i] = rapid.IntRange(0, readers-1).Draw(t, "reader")
			brought[i] = append(brought[i], "shop.terms.hot_param.steady:3|c")
			sum += 3
			for k := range rapid.IntRange(0, 3).Draw(t, "others") {
				brought[i] = append(brought[i], fmt.Sprintf("shop.terms.hot_param.k%d:1|c", k))
				sum++
			}
		}
		for {
			slowest, active := steps, []int(nil)
			for _, n := range at {
				slowest = min(slowest, n)
			}
			for r, n := range at {
				if n < steps && n < slowest+lag {
					active = append(active, r)
				}
			}
			if len(active) == 0 {
				break
			}
			r := rapid.SampledFrom(active).Draw(t, "next")
			first, now := noon.Add(time.Duration(at[r])*step), noon
			feeds[r].Begin()
			for range rapid.IntRange(1, 4).Draw(t, "steps of a read") { // it may have napped
				i := at[r]
				if i == steps || i >= slowest+lag {
					break
				}
				at[r]++
				now = noon.Add(time.Duration(i) * step)
				if by[i] == r {
					for _, line := range brought[i] {
						decoders[r].Packet([]byte(line), now, feeds[r])
					}
				}
			}
			feeds[r].End(first, now, rapid.Bool().Draw(t, "behind"))
		}
		over := noon.Add(steps*step + 2*time.Second)
		for i := range feeds {
			feeds[i].Begin()
			feeds[i].End(over, over, false)
		}
		for _, s := range shards {
			close(s.queue)
		}
		running.Wait()
		late, counted := int64(0), int64(0)
		for _, s := range shards {
			w := s.detector.rules[0].views[0].Window
			late, counted = late+w.Late(), counted+w.Counted()
		}
		if late != 0 || counted != sum {
			t.Fatalf("%d of %d are counted, %d late", counted, sum, late)
		}
		var hot, cool int
		for _, c := range out.changes {
			for _, h := range c.Hot {
				if h.Text == "steady" {
					hot++
				}
			}
			for _, h := range c.Cool {
				if h.Text == "steady" {
					cool++
					if h.Until.Before(noon.Add(steps * step)) {
						t.Fatalf("it cooled at %v", h.Until.Sub(noon))
					}
				}
			}
		}
		if hot != 1 || cool != 1 {
			t.Fatalf("hot %d times, cool %d times", hot, cool)
		}
	})
}

// Readers that run at the same time deliver each count to one shard once.
func TestReadersAtTheSameTime(t *testing.T) {
	const readers, rounds, keys = 4, 300, 50
	rules := testRules(hotRule("terms", 1, time.Hour))
	var shards []*shard
	for range 3 {
		shards = append(shards, newShard(NewDetector(DetectorConfig{Rules: rules, Publisher: newRecorder()}), readers))
	}
	var running, reading sync.WaitGroup
	for _, s := range shards {
		running.Go(s.run)
	}
	first := decode.NewDecoder(rules, wire.Plain)
	for r, feed := range newFeeds(shards, rules) {
		d := decode.NewDecoder(rules, wire.Plain)
		d.ShareSenders(first)
		reading.Go(func() {
			for i := range rounds {
				now := noon.Add(time.Duration(i) * time.Millisecond)
				feed.Begin()
				packet := fmt.Appendf(nil, "%s\nshop.terms.hot_param.k%d:%d|c", wire.AppendMeta(nil, wire.Meta{
					Instance: fmt.Append(nil, "i", r), Incarnation: 1, Seq: uint64(i + 1), Start: now.UnixNano(), Held: int64(i%3) + 1,
				}), i%keys, r+1)
				d.Packet(packet, now, feed)
				feed.End(now, now, i%5 == r)
			}
		})
	}
	reading.Wait()
	for _, s := range shards {
		close(s.queue)
	}
	running.Wait()
	got := shardCounts(t, shards)
	for k := range keys {
		if n := got[fmt.Sprint("k", k)]; n != rounds/keys*(1+2+3+4) {
			t.Errorf("k%d counts %d", k, n)
		}
	}
	// All shards have received the final bound of the held-back counts.
	const want = readers * 2 * (3 - 1)
	for _, s := range shards {
		if held := s.detector.rules[0].views[0].Held(); held != want {
			t.Errorf("a shard takes %d to be held back, want %d", held, want)
		}
	}
}

// A reader that has not begun holds up the time but not the counts.
func TestReaderThatHasNotBegun(t *testing.T) {
	rules := testRules(hotRule("terms", 5, time.Second))
	out := newRecorder()
	s := newShard(NewDetector(DetectorConfig{Rules: rules, Publisher: out, Lag: decode.DefaultLag}), 2)
	feeds := newFeeds([]*shard{s}, rules)
	feeds[0].Begin()
	feeds[0].Count(decode.Count{Hash: 1, Text: []byte("k"), N: 5, When: noon})
	feeds[0].End(noon, noon, false)
	for _, late := range []time.Duration{time.Minute, 2 * time.Minute} {
		feeds[0].Begin()
		feeds[0].End(noon.Add(late), noon.Add(late), false)
	}
	if events := out.events(); len(events) != 1 {
		t.Errorf("told %q, want the key hot", events)
	}
}

// A reader's last report of missing counts holds, in whichever order the shards receive it.
func TestShardsHearTheLastWord(t *testing.T) {
	ruleset := decoderRules()
	shards := newTestShards(1, newRecorder(), ruleset)
	shards[0].read = make([]time.Time, 2)
	feeds := newFeeds(shards, ruleset)
	for _, s := range feeds {
		s.Begin()
	}
	feeds[0].SetHeldBackBound(0, 9, 9)
	feeds[0].RecordLoss(noon)
	feeds[1].SetHeldBackBound(0, 4, 4) // by then
	feeds[1].ReduceLoss(time.Time{})
	feeds[1].End(noon, noon, false)
	feeds[0].End(noon, noon, false)
	w := shards[0].detector.rules[0].views[0].Window
	if _, high := w.Span(0, nil, w.Now(), int64(w.Panes)); w.Held() != 4 || high == published.Unknown {
		t.Errorf("held %d, high is %d", w.Held(), high)
	}
}

// A reader that lags by more than everything that is kept does not set the clock back.
func TestReaderThatLagsRestartsNothing(t *testing.T) {
	rules := testRules(hotRule("terms", 5, time.Second))
	out := newRecorder()
	s := newShard(NewDetector(DetectorConfig{Rules: rules, Publisher: out, Lag: decode.DefaultLag}), 2)
	feeds := newFeeds([]*shard{s}, rules)
	read := func(reader int, after time.Duration, n int64) {
		feeds[reader].Begin()
		if n > 0 {
			feeds[reader].Count(decode.Count{Hash: 1, Text: []byte("k"), N: n, When: noon.Add(after)})
		}
		feeds[reader].End(noon.Add(after), noon.Add(after), false)
	}
	read(0, 0, 0)
	read(1, 0, 0)
	read(0, time.Minute, 5)
	read(1, time.Second, 0)
	read(0, time.Minute+time.Second/2, 5)
	if events := out.events(); len(events) != 1 {
		t.Errorf("told %q, want the key hot", events)
	}
}

// Batches of a reader stay in order: none overtakes a queued one.
func TestReadersWaitTheirTurn(t *testing.T) {
	s := newTestShards(1, newRecorder(), decoderRules())[0]
	feed := newFeeds([]*shard{s}, decoderRules())[0]
	for i, behind := range []bool{false, true, false} {
		feed.Begin()
		feed.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 1, When: noon})
		feed.End(noon, noon, behind)
		if len(s.queue) != i {
			t.Errorf("after read %d %d are queued, want %d", i, len(s.queue), i)
		}
	}
}

// shardCounts returns the counts of hot keys in the windows of the first rule.
func shardCounts(t *testing.T, shards []*shard) map[string]int64 {
	t.Helper()
	sums := make(map[string]int64)
	for _, s := range shards {
		w := s.detector.rules[0].views[0].Window
		w.Each(0, func(i int32) {
			name := string(w.Name(i))
			if _, twice := sums[name]; twice {
				t.Errorf("%q is in two shards", name)
			}
			sums[name] += w.Sum(i, w.Now())
		})
	}
	return sums
}
