package aggregator

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
)

// The routes and callers that instances report for a hot key pass through the decoder and the feed
// into its attribution. Those of other keys are dropped.
func TestRoutesAndCallersOfHotKeys(t *testing.T) {
	ruleset := testRules(hotRule("terms", 10, time.Second))
	out := newRecorder()
	shards := []*shard{
		newShard(NewDetector(DetectorConfig{Rules: ruleset, Publisher: out, Part: 0, Parts: 2}), 1),
		newShard(NewDetector(DetectorConfig{Rules: ruleset, Publisher: out, Part: 1, Parts: 2}), 1),
	}
	feed := newFeeds(shards, ruleset)[0]
	d := decode.NewDecoder(ruleset, wire.Plain)
	prefix := ruleset.Rules[0].CountPrefix(ruleset.Namespace)
	packet := func(now time.Time, lines ...string) {
		feed.Begin()
		for _, line := range lines {
			d.Packet([]byte(line), now, feed)
		}
		feed.End(now, now, false)
	}
	origin := func(text string, kind wire.OriginKind, name string, n int64) string {
		return string(wire.AppendOrigin(nil, wire.Plain, prefix, []byte(text), wire.OriginLine{Kind: kind, Name: []byte(name), N: n}))
	}
	packet(noon, prefix+".hot_param.q=a%2Eb:50|c\n"+prefix+".hot_param.cold:5|c")
	packet(noon.Add(time.Second/2),
		prefix+".hot_param.q=a%2Eb:50|c\n"+origin("q=a.b", wire.Caller, "10.0.0.7", 30)+"\n"+origin("q=a.b", wire.Caller, "10.0.0.8", 60)+"\n"+origin("q=a.b", wire.Route, "GET /s", 90),
		origin("cold", wire.Caller, "10.0.0.7", 5)+"\n"+prefix+".hot_origin.q:1|c|#x:y\nnobody.hot_origin.q:1|c|#c:y")
	for _, s := range shards {
		s.detector.Refresh()
	}
	var told []published.Hot
	for _, hot := range out.refresh {
		told = append(told, hot...)
	}
	if len(told) == 0 {
		t.Fatal("nothing was refreshed")
	}
	last := told[len(told)-1]
	if last.Text != "q=a.b" || last.Top == nil {
		t.Fatalf("told of %+v", last)
	}
	top := last.Top
	if len(top.Callers) != 2 || top.Callers[0] != (published.Origin{Name: "10.0.0.8", Count: 60}) || top.Callers[1].Count != 30 {
		t.Errorf("callers %+v", top.Callers)
	}
	if len(top.Routes) != 1 || top.Routes[0] != (published.Origin{Name: "GET /s", Count: 90}) {
		t.Errorf("routes %+v", top.Routes)
	}
	if s := d.Stats(); s.Origins != 4 || s.Malformed != 1 || s.NoRule != 1 || s.Foreign != 0 {
		t.Errorf("stats %+v", s)
	}
}
