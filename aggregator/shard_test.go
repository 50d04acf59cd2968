package aggregator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

func newTestShards(n int, out Publisher, rules *rules.Rules) []*shard {
	shards := make([]*shard, n)
	for i := range shards {
		shards[i] = newShard(NewDetector(DetectorConfig{Rules: rules, Publisher: out, Memory: 4 << 20}), 1)
	}
	return shards
}

// Every count reaches the one shard that owns its key, whole and with its text. Reports of hidden
// and lost counts reach all shards.
func TestSpreadGivesEachKeyToOneShard(t *testing.T) {
	for _, behind := range []bool{false, true} {
		t.Run(fmt.Sprint("behind ", behind), func(t *testing.T) { testSpread(t, behind) })
	}
}

func testSpread(t *testing.T, behind bool) {
	const n, keys = 3, 500
	shards := newTestShards(n, newRecorder(), decoderRules())
	s := newFeeds(shards, decoderRules())[0]
	s.Begin()
	for i := range 2 * keys {
		text := fmt.Append(nil, "key ", i%keys)
		s.Count(decode.Count{Rule: 0, Hash: rules.Hash(text), Text: text, N: int64(i%keys + 1), When: noon})
		clear(text) // the feed must have kept its own
	}
	s.AddHiddenCounts(noon, 7)
	s.SetHeldBackBound(0, 9, 9)
	s.RecordLoss(noon.Add(time.Hour))
	s.ReduceLoss(noon)
	s.End(noon, noon, behind)

	found := make(map[string]int)
	for _, shard := range shards {
		if len(shard.queue) > 0 != behind {
			t.Errorf("%d batches are queued", len(shard.queue))
		}
		close(shard.queue)
		shard.run()
		w := shard.detector.rules[0].views[0].Window
		most := w.AtMost(0, nil, w.Now())
		if _, high := w.Span(0, nil, w.Now(), 1); most != 7+9 || w.Held() != 9 || high != published.Unknown {
			t.Errorf("a shard knows of %d hidden and held, %d held, high is %d", most, w.Held(), high)
		}
		if _, high := w.Span(0, nil, w.Now()+1, 1); high == published.Unknown {
			t.Error("a shard takes a later pane to lack something")
		}
		w.Each(0, func(i int32) {
			text, sum := string(w.Name(i)), w.Sum(i, w.Now())
			found[text]++
			var k int64
			if _, err := fmt.Sscanf(text, "key %d", &k); err != nil || sum != 2*(k+1) {
				t.Errorf("%q counts %d (%v)", text, sum, err)
			}
		})
		held := 0
		if s.batches[0] != nil {
			held = 1
		}
		if len(shard.free)+held != queued+1 || shard.pending.Load() != 0 {
			t.Errorf("%d batches are free, %d held, want all %d; %d are pending", len(shard.free), held, queued+1, shard.pending.Load())
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

// The detector that brings rules of all windows sees each count once when several shards share the
// keys, so the hot set is the same for any number of shards.
func TestShardsFindWhatOneShardFinds(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		out := newRecorder()
		ruleset := testRules(hotRule("terms", 10, time.Second))
		shards := newTestShards(n, out, ruleset)
		s, d := newFeeds(shards, ruleset)[0], decode.NewDecoder(ruleset, wire.Plain)
		var done []chan struct{}
		for _, shard := range shards {
			end := make(chan struct{})
			done = append(done, end)
			go func() { defer close(end); shard.run() }()
		}
		for round := range 10 {
			s.Begin()
			for k := range 40 {
				if k%4 == 0 || round == 0 { // every fourth key comes ten times
					d.Packet(fmt.Appendf(nil, "shop.terms.hot_param.k%d:1|c", k), noon, s)
				}
			}
			s.End(noon, noon, round%3 == 0) // the reader works for the shards in between
		}
		for i, shard := range shards {
			close(shard.queue)
			<-done[i]
		}
		hot := out.hot()
		for k := range 40 {
			if _, is := hot[rules.Key{Rule: "terms", Text: fmt.Sprint("k", k)}]; is != (k%4 == 0) {
				t.Errorf("%d shards: k%d is hot: %v", n, k, is)
			}
		}
	}
}

// Without packets, the clock alone refreshes hot keys, cools them when their window has passed,
// and updates the stats.
func TestShardWorksByTheClockWhenNothingComes(t *testing.T) {
	rule := hotRule("terms", 10, 2*time.Second)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
	out := newRecorder()
	s := newShard(NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: decode.DefaultLag}), 1)
	feed := newFeeds([]*shard{s}, testRules(rule))[0]
	done := make(chan struct{})
	go func() { defer close(done); s.run() }()
	for now := noon; now.Before(noon.Add(2500 * time.Millisecond)); now = now.Add(decode.Tick) {
		feed.Begin()
		if now.Equal(noon) {
			feed.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 10, When: now})
		}
		feed.End(now, now, true)
	}
	close(s.queue)
	<-done
	want := coolEvent("terms", "k", noon.Add(2*time.Second+base.FlushInterval), 0, 0)
	if events := out.events(); len(events) != 2 || events[1] != want {
		t.Errorf("told %q, want %q in the end", events, want)
	}
	if refreshed := out.refreshed(); !slices.Equal(refreshed, []string{"k", "k", "k"}) {
		t.Errorf("refreshed %q, want it at once and each second", refreshed)
	}
	if stats := s.stats.Load(); stats.Hot != 0 || stats.Late != 0 {
		t.Errorf("in the end: %+v", stats)
	}
}

// Between batches a shard receives the time at each tick, not more often.
func TestSpreadTellsTheTime(t *testing.T) {
	s := newFeeds(newTestShards(2, newRecorder(), decoderRules()), decoderRules())[0]
	told := func(after time.Duration) int {
		s.Begin()
		s.End(noon.Add(after), noon.Add(after), true)
		return len(s.shards[0].queue) + len(s.shards[1].queue)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 2}, {decode.Tick - 1, 2}, {decode.Tick, 4}, {decode.Tick + 1, 4}, {0, 6}} { // at last the clock was set back
		if got := told(step.after); got != step.want {
			t.Errorf("after %v the shards were told the time %d times, want %d", step.after, got, step.want)
		}
	}
}

// After a reader was held up, the waiting packets of its socket are counted before panes are
// closed. A key whose counts came in time does not cool.
func TestShardThatWasHeldUpCoolsNothing(t *testing.T) {
	rule := hotRule("terms", 10, time.Second)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
	out := newRecorder()
	s := newShard(NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: decode.DefaultLag}), 1)
	feed := newFeeds([]*shard{s}, testRules(rule))[0]
	read := func(first, last time.Time, now time.Time) {
		feed.Begin()
		for when := first; !when.After(last); when = when.Add(100 * time.Millisecond) {
			feed.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 5, When: when})
		}
		feed.End(first, now, false)
	}
	read(noon, noon.Add(500*time.Millisecond), noon.Add(500*time.Millisecond))
	later := noon.Add(4 * time.Second)
	read(noon.Add(600*time.Millisecond), later, later) // nothing was read for 3.5 s
	if events := out.events(); len(events) != 1 {
		t.Errorf("told %q, want the key hot once", events)
	}
}

// BenchmarkShard measures the time per count when one shard works off a batch of one read's
// counts.
func BenchmarkShard(b *testing.B) {
	const keys, perBatch = 1 << 20, 1280
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 1, 99_999)
	for _, bench := range []struct {
		name string
		key  func(i int) uint64
	}{
		{"zipf", func(int) uint64 { return zipf.Uint64() }},
		{"distinct", func(i int) uint64 { return uint64(i) % keys }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			ruleset := testRules(hotRule("r", 1<<40, 10*time.Second))
			s := newShard(NewDetector(DetectorConfig{Rules: ruleset, Publisher: newRecorder()}), 1)
			batches := make([]*shardBatch, keys/perBatch)
			for i := range batches {
				batches[i] = new(shardBatch)
				batches[i].beginPacket(&decode.Count{When: noon})
				for j := range perBatch {
					text := fmt.Appendf(nil, "GET /search?q=%d", bench.key(i*perBatch+j))
					batches[i].add(&decode.Count{Hash: rules.Hash(text), Text: text, N: 1})
				}
			}
			now := noon
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				one := batches[i%len(batches)]
				now = now.Add(perBatch * time.Microsecond)
				one.arrived, one.now, one.packets[0].when = now, now, now
				s.countBatch(one)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/perBatch, "ns/op")
		})
	}
}

// A snapshot includes all counts that were passed on before it, however long they wait in the
// queue.
func TestSaveWaitsForWhatIsQueued(t *testing.T) {
	shards := NewShards(DetectorConfig{Rules: testRules(hotRule("r", 10, time.Second)), Publisher: newRecorder(), Memory: 1 << 20}, 1, 1)
	f := shards.Feed(0)
	f.Begin()
	f.Counts([]decode.Count{{Hash: rules.Hash([]byte("k")), Text: []byte("k"), N: 12, When: noon}})
	f.End(noon, noon, true)
	wait := shards.Save(10, nil)
	go shards.Run()
	defer shards.Close()
	var s snapshot.Snapshot
	dropped := wait(&s)
	if keys := s.Keys; len(keys) != 1 || len(keys[0].Views) != 1 || len(keys[0].Views[0].Counts) != 1 || keys[0].Views[0].Counts[0].N != 12 || dropped != 0 {
		t.Errorf("saved %+v, dropped %d, want the twelve counts", keys, dropped)
	}
}

// The gaps that a snapshot carries are not part of its bounds, since the process that resumes it
// has those gaps and may fill them.
func TestSaveLeavesOutCarriedGaps(t *testing.T) {
	for _, carried := range []map[uint64]bool{nil, {7: true}, {8: true}} {
		shards := NewShards(DetectorConfig{Rules: testRules(hotRule("r", 10, time.Second)), Publisher: newRecorder(), Memory: 1 << 20, Start: noon.Add(-time.Minute)}, 1, 1)
		f := shards.Feed(0)
		f.Begin()
		f.Counts([]decode.Count{{Hash: rules.Hash([]byte("k")), Text: []byte("k"), N: 12, When: noon}})
		f.RecordGap(decode.Gap{ID: 7, From: noon.Add(-time.Millisecond), To: noon, Loose: 5})
		f.End(noon, noon, true)
		wait := shards.Save(10, carried)
		go shards.Run()
		var s snapshot.Snapshot
		wait(&s)
		shards.Close()
		v := s.Keys[0].Views[0]
		want := int64(5)
		if carried[7] {
			want = 0
		}
		if lacks := v.LackFrom(v.Newest); lacks != want {
			t.Errorf("with %v carried the key lacks %d, want %d", carried, lacks, want)
		}
	}
}

// BenchmarkSave saves the keys near a threshold of windows of 64 MiB, by a rate alone, and by a
// share of each of a hundred groups, a jump and a rank as well.
func BenchmarkSave(b *testing.B) {
	compared := hotRule("r", 50, time.Minute)
	for _, kind := range []rules.ThresholdKind{rules.Share, rules.Jump, rules.Top} {
		th := compared.Hot[0]
		th.Kind, th.Factor, th.Top = kind, rules.Percent(50), 10
		if kind == rules.Jump {
			th.Factor = rules.Fraction{Num: 3, Den: 1}
		}
		compared.Hot = append(compared.Hot, th)
	}
	for _, bench := range []struct {
		hot  int
		kind string
		rule rules.Rule
	}{
		{100, "rate", hotRule("r", 50, time.Minute)}, {4000, "rate", hotRule("r", 50, time.Minute)}, {100, "all", compared}, {4000, "all", compared},
	} {
		hot := bench.hot
		b.Run(fmt.Sprint(bench.kind, "-", hot), func(b *testing.B) {
			shards := NewShards(DetectorConfig{Rules: testRules(bench.rule), Publisher: newRecorder(), Memory: 64 << 20}, 2, 1)
			go shards.Run()
			defer shards.Close()
			f := shards.Feed(0)
			for at := range 60 {
				now := noon.Add(time.Duration(at) * time.Second)
				f.Begin()
				for i := range hot {
					text := fmt.Appendf(nil, "GET /s/%d?q=%d", i%100, i)
					f.Counts([]decode.Count{{Hash: rules.Hash(text), Text: text, N: 2, When: now}})
				}
				for i := range 5000 {
					text := fmt.Appendf(nil, "GET /s/%d?q=cold-%d-%d", i%100, at, i)
					f.Counts([]decode.Count{{Hash: rules.Hash(text), Text: text, N: 1, When: now}})
				}
				f.End(now, now, false)
			}
			b.ReportAllocs()
			for b.Loop() {
				s := snapshot.Snapshot{Cut: noon, Rules: []string{"r"}}
				shards.Save(8192, nil)(&s)
				data, _ := s.Append(nil)
				b.ReportMetric(float64(len(data)), "bytes")
			}
		})
	}
}
