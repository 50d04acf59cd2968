package aggregator

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

func newTestShards(n int, out Publisher, rules *hotparam.Rules) []*shard {
	shards := make([]*shard, n)
	for i := range shards {
		shards[i] = newShard(NewDetector(DetectorConfig{Rules: rules, Publisher: out, Memory: 4 << 20}))
	}
	return shards
}

// Every count reaches the one shard that owns its key, whole and with its text,
// and what is hidden or lost reaches all.
func TestSpreadGivesEachKeyToOneShard(t *testing.T) {
	const n, keys = 3, 500
	shards := newTestShards(n, newRecorder(), decoderRules())
	s := newSpread(shards)
	s.begin()
	for i := range 2 * keys {
		text := fmt.Append(nil, "key ", i%keys)
		s.Count(Count{Rule: 0, Hash: hotparam.Hash(text), Text: text, N: int64(i%keys + 1), When: noon})
		clear(text) // the spread must have kept its own
	}
	s.Hidden(noon, 7)
	s.Lost(noon)
	s.end(noon)

	found := make(map[string]int)
	for _, shard := range shards {
		close(shard.queue)
		shard.run()
		w := shard.detector.rules[0].window
		if w.hidden.sum(w.now, 1) != 7 || w.lost != w.now {
			t.Errorf("a shard knows of %d hidden, loss at pane %d", w.hidden.sum(w.now, 1), w.lost)
		}
		for i := range w.n {
			e, _ := w.at(int32(i))
			found[string(e.text)]++
			var k int64
			if _, err := fmt.Sscanf(string(e.text), "key %d", &k); err != nil || e.sum != 2*(k+1) {
				t.Errorf("%q counts %d (%v)", e.text, e.sum, err)
			}
		}
		if len(shard.free) != queued {
			t.Errorf("%d batches are free, want all %d", len(shard.free), queued)
		}
	}
	if len(found) != keys {
		t.Errorf("%d keys were found, want %d", len(found), keys)
	}
	for key, times := range found {
		if times != 1 {
			t.Errorf("%q is in %d shards", key, times)
		}
	}
}

// The detector that brings rules of all windows sees each count once when
// several shards share the keys: the hot set is the same for any number.
func TestShardsFindWhatOneShardFinds(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		out := newRecorder()
		rules := testRules(hotRule("terms", 10, time.Second))
		shards := newTestShards(n, out, rules)
		s, d := newSpread(shards), NewDecoder(rules, wire.Plain)
		var done []chan struct{}
		for _, shard := range shards {
			end := make(chan struct{})
			done = append(done, end)
			go func() { defer close(end); shard.run() }()
		}
		for round := range 10 {
			s.begin()
			for k := range 40 {
				if k%4 == 0 || round == 0 { // every fourth key comes ten times
					d.Packet(fmt.Appendf(nil, "shop.terms.hot_param.k%d:1|c", k), noon, s)
				}
			}
			s.end(noon)
		}
		for i, shard := range shards {
			close(shard.queue)
			<-done[i]
		}
		hot := out.hot()
		for k := range 40 {
			if _, is := hot[hotparam.Key{Rule: "terms", Text: fmt.Sprint("k", k)}]; is != (k%4 == 0) {
				t.Errorf("%d shards: k%d is hot: %v", n, k, is)
			}
		}
	}
}

// With no more packets, the clock alone refreshes what is hot, cools it when its
// window has passed, and brings the stats up to date.
func TestShardWorksByTheClockWhenNothingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := hotRule("terms", 10, 2*time.Second)
		rule.Hot.Hold = 0
		out := newRecorder()
		s := newShard(NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: DefaultLag}))
		go s.run()
		begin := time.Now()
		spread := newSpread([]*shard{s})
		spread.begin()
		spread.Count(Count{Hash: 1, Text: []byte("k"), N: 10, When: begin})
		spread.end(begin)

		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if events, refreshed := out.events(), out.refreshed(); len(events) != 1 || !slices.Equal(refreshed, []string{"k", "k"}) {
			t.Errorf("after 1.5 s: %q, refreshed %q", events, refreshed)
		}
		if stats := s.stats.Load(); stats.Hot != 1 || stats.Keys != 1 {
			t.Errorf("after 1.5 s: %+v", stats)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want := coolEvent("terms", "k", begin.Add(2*time.Second+hotparam.FlushEvery), 0, 0)
		if events := out.events(); len(events) != 2 || events[1] != want {
			t.Errorf("after 2.5 s: %q, want %q in the end", events, want)
		}
		close(s.queue)
		synctest.Wait()
	})
}
