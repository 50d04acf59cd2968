package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// A sampled key becomes hot by the estimate of its counts. Its published low bound contains only
// the counts that were seen.
func TestSampledKeysAreEstimated(t *testing.T) {
	rule := hotRule("terms", 100, time.Second)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
	out, ruleset := newRecorder(), testRules(rule)
	detector, d := NewDetector(DetectorConfig{Rules: ruleset, Publisher: out}), decode.NewDecoder(ruleset, wire.Plain)
	key := rules.Key{Rule: "terms", Text: "k"}
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
	if !h.Estimated || h.Low != 10 || h.High != published.Unknown || h.Rate != 100 || h.Ratio != 1 {
		t.Errorf("hot as %+v, want 10 that were seen, of an estimate of 100/s", h)
	}
	if h := out.hot()[rules.Key{Rule: "terms", Text: "exact"}]; h.Estimated || h.Low != 100 || h.High != 100 {
		t.Errorf("a key without samples is hot as %+v", h)
	}
	// Exact counts that come with samples count as seen.
	line("k:50|c", 100*time.Millisecond)
	detector.AdvanceTo(noon.Add(200*time.Millisecond), noon.Add(200*time.Millisecond))
	detector.Refresh()
	told := func() published.Hot {
		for _, h := range out.refresh[len(out.refresh)-1] {
			if h.Key == key {
				return h
			}
		}
		return published.Hot{}
	}
	if h := told(); !h.Estimated || h.Low != 60 || h.High != published.Unknown || h.Rate != 150 || h.Ratio != 1.5 {
		t.Errorf("told as %+v, want 60 that were seen of 150", h)
	}
	// The window contains no sample any more.
	for at := 200 * time.Millisecond; at <= 3*time.Second; at += 100 * time.Millisecond {
		line("k:20|c", at)
		detector.AdvanceTo(noon.Add(at), noon.Add(at))
	}
	detector.Refresh()
	if h := told(); h.Estimated || h.Low != 200 || h.High != 200 {
		t.Errorf("a window after the last sample it is told as %+v, want 200", h)
	}
	// A late sample, too, does not make the key an estimate.
	line("k:1|c|@0.1", 1600*time.Millisecond)
	detector.Refresh()
	if h := told(); h.Estimated || h.Low != 200 || h.High != 200 {
		t.Errorf("after a late sample it is told as %+v, want 200", h)
	}
	// Samples that do not add up to a whole count yet make the key an estimate, too.
	line("k:9|c|@0.9", 3*time.Second)
	line("k:1|c|@0.99", 3*time.Second)
	detector.Refresh()
	if h := told(); !h.Estimated || h.Low != 210 {
		t.Errorf("told as %+v, want 210 that were seen", h)
	}
	// The key cools by the estimate.
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
	if len(cooled) != 1 || cooled[0].High == published.Unknown && !cooled[0].Estimated {
		t.Errorf("cooled as %+v", cooled)
	}
	if s := detector.Stats(); s.Keys > 2 {
		t.Errorf("guesses are told as keys: %+v", s)
	}
}

// Shards receive samples, whether or not a reader works for them.
func TestShardsHearOfSamples(t *testing.T) {
	for _, behind := range []bool{false, true} {
		out, ruleset := newRecorder(), testRules(hotRule("terms", 10, time.Second))
		shards := newTestShards(2, out, ruleset)
		s, d := newFeeds(shards, ruleset)[0], decode.NewDecoder(ruleset, wire.Plain)
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
			h := out.hot()[rules.Key{Rule: "terms", Text: fmt.Sprint("k", k)}]
			if h.Estimated != (k%3 == 0) || h.Low != int64(10+k) {
				t.Errorf("behind: %v: k%d is hot as %+v", behind, k, h)
			}
		}
		if n := d.Stats().Samples; n != 7 {
			t.Errorf("%d samples are told, want 7", n)
		}
	}
}
