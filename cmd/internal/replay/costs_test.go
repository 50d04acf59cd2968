package replay

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// cost is the amount that one request adds to a key of a rule.
type cost struct {
	at   int64
	rule int
	key  string
	n    int64
}

// pipeline is a replay without a guard: costs pass through collector, lines, decoder and
// detector. It is needed since an access log does not contain all kinds of costs.
type pipeline struct {
	decoder  *decode.Decoder
	detector *aggregator.Detector
	now      time.Time
	events   []exact.HotChange
}

// Send takes a packet from the collector's sink.
func (p *pipeline) Send(packet []byte) (int, error) {
	p.decoder.Packet(packet, p.now, p.detector)
	return len(packet), nil
}

func (p *pipeline) Close() error { return nil }

// Publish implements [aggregator.Publisher].
func (p *pipeline) Publish(change published.Change) {
	note := func(h published.Hot, hot bool, at time.Time) {
		p.events = append(p.events, exact.HotChange{
			Key: h.Text, Rule: h.Rule, Hot: hot, At: at.UnixNano(), Low: h.Low, High: h.High, Threshold: h.Cause.String(),
		})
	}
	for _, h := range change.Hot {
		note(h, true, h.Since)
	}
	for _, h := range change.Cool {
		note(h, false, h.Until)
	}
}

func (*pipeline) Refresh(int, []published.Hot)   {}
func (*pipeline) Suspects(int, []published.Hot)  {}
func (*pipeline) Instances([]published.Instance) {}

// costKeys are keys of two groups. One of them is too long to have parameters.
var costKeys = []string{"GET /s?q=a", "GET /s?q=b", "GET /s?q=c1", "GET /t?q=a", "GET /s?p=1&q=a", "GET /s?q=" + strings.Repeat("x", 400) + "~0123456789abcdef0123456789abcdef"}

// drawCosts draws bursts of requests of very different costs, in order.
func drawCosts(t *rapid.T, rules int) (costs []cost) {
	at := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC).UnixNano() + rapid.Int64Range(0, 2e9).Draw(t, "start")
	for range rapid.IntRange(1, 10).Draw(t, "bursts") {
		n := rapid.SampledFrom([]int64{1, 3, 1000, 1<<20 + 1}).Draw(t, "cost")
		spread := rapid.SampledFrom([]int64{0, 1e7, 1e8, 3e8, 1e9}).Draw(t, "spread")
		key := rapid.SampledFrom(costKeys).Draw(t, "key")
		other := rapid.SampledFrom(costKeys).Draw(t, "other")
		for i := range rapid.IntRange(1, 40).Draw(t, "length") {
			for rule := range rules {
				costs = append(costs, cost{at, rule, key, n})
				if i%3 == 0 {
					costs = append(costs, cost{at, rule, other, max(1, n/2)})
				}
			}
			at += spread
		}
		at += rapid.SampledFrom([]int64{0, 1, 5e7, 1e9, 9e9, 11e9, 65e9, 4e12}).Draw(t, "pause")
	}
	return costs
}

// Bytes, milliseconds and units pass through the pipeline, and every event is that of the
// reference. So are, at the end of every pane, the count of one key, the count that it needed,
// and the count below which it would cool.
func TestCostsOfAllKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	rapid.Check(t, func(t *rapid.T) {
		ruleset := drawRules(t)
		for i := range ruleset {
			ruleset[i].By = "all" // the keys are given: none of them explains another
		}
		var file strings.Builder
		file.WriteString("rules:\n")
		counters := make([]*exact.Counter, len(ruleset))
		for i := range ruleset {
			r := &ruleset[i]
			r.Count = rapid.SampledFrom([]string{"bytes", "ms", "units"}).Draw(t, "count")
			scale := rapid.SampledFrom([]int64{1, 1, 1000, 200_000}).Draw(t, "scale")
			for j := range r.Hot {
				r.Hot[j].N *= scale
			}
			for j := range r.Except {
				if r.Except[j].Action != "" {
					r.Except[j].Action = "allow"
				}
				r.Except[j].N *= scale
			}
			file.WriteString(r.YAML(fmt.Sprint("r", i)))
			counters[i] = exact.NewCounter(*r)
		}
		parsed, err := config.Parse("rules.yaml", []byte(file.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, file.String())
		}
		p := &pipeline{decoder: decode.NewDecoder(parsed.Rules, wire.Plain)}
		key := rapid.SampledFrom(costKeys).Draw(t, "explained")
		var accounts []aggregator.Account
		p.detector = aggregator.NewDetector(aggregator.DetectorConfig{
			Rules: parsed.Rules, Publisher: p, Memory: 1 << 30,
			Explain: rules.Key{Text: key}, OnAccount: func(a aggregator.Account) { accounts = append(accounts, a) },
		})
		sink, err := statsdsink.New(statsdsink.Config{Rules: parsed.Rules, Sender: p, Instance: "costs"})
		if err != nil {
			t.Fatal(err)
		}
		counts, err := collector.New(collector.Config{Sink: sink, Budget: -1})
		if err != nil {
			t.Fatal(err)
		}
		costs := drawCosts(t, len(ruleset))
		for i, c := range costs {
			at := time.Unix(0, c.at)
			if i == 0 || c.at != costs[i-1].at {
				if i > 0 {
					counts.Flush(context.Background(), p.now)
				}
				p.now = at
				p.detector.Advance(at)
			}
			counters[c.rule].Tick(c.at)
			counters[c.rule].Add(c.at, c.key, c.n)
			if x := parsed.Rules.Rules[c.rule].Exception(c.key); x == nil || x.Action != rules.Allow { // else the guard counts nothing
				member := []byte(rules.Key{Rule: fmt.Sprint("r", c.rule), Text: c.key}.String())
				counts.Add(rules.Hash(member), member, uint64(c.n))
			}
		}
		counts.Flush(context.Background(), p.now)
		want := make(map[string]exact.LogResult)
		for i, c := range counters {
			want[fmt.Sprint("r", i)] = c.Result()
		}
		if wrong := exact.CompareRules(want, p.events); len(wrong) > 0 {
			t.Fatal(strings.Join(wrong, "\n"))
		}
		for i := 0; i < len(accounts); i += 1 + len(accounts)/30 {
			a := accounts[i]
			var rule, number int
			if _, err := fmt.Sscanf(a.Rule, "r%d", &rule); err != nil {
				t.Fatal(err)
			}
			for j := range parsed.Rules.Rules[rule].Hot {
				if &parsed.Rules.Rules[rule].Hot[j] == a.Threshold {
					number = j
				}
			}
			need, count := counters[rule].Needs(number, key, a.Start.UnixNano())
			if known := a.Enter != published.Unknown; known != need.Known || known && a.Enter != need.Enter || a.Exit != need.Exit || a.Low != count || a.High != count {
				t.Fatalf("%+v: account of %s by %s: %+v; want %+v and a count of %d", ruleset[rule], key, published.CauseOf(a.Threshold, 0), a, need, count)
			}
		}
	})
}
