package replay

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
)

// verifyRules replays a log with rules of any kind of threshold, written as in a file. It
// compares each event and its bounds with the exact count of the same requests, which are in
// order.
func verifyRules(t tester, log *accesslog.Log, requests iter.Seq2[exact.TraceRequest, error], rules []exact.RuleSpec) (wrong []string, events int) {
	t.Helper()
	var file strings.Builder
	file.WriteString("rules:\n")
	counters := make([]*exact.Counter, len(rules))
	for i, r := range rules {
		file.WriteString(r.YAML(fmt.Sprint("r", i)))
		counters[i] = exact.NewCounter(r)
	}
	parsed, err := config.Parse("rules.yaml", []byte(file.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, file.String())
	}
	n := int64(0)
	for r, err := range requests {
		if err != nil {
			t.Fatal(err)
		}
		n++
		keys := make(map[string][]string)
		for i, c := range counters {
			by := rules[i].By
			if _, made := keys[by]; !made {
				keys[by] = exact.Keys(by, r.Method, r.Target)
			}
			c.Tick(r.At)
			for _, key := range keys[by] {
				c.Add(r.At, key, 1)
			}
		}
	}
	want := make(map[string]exact.LogResult)
	for i, c := range counters {
		want[fmt.Sprint("r", i)] = c.Result()
	}
	got := collect{t: t}
	summary, err := Run(context.Background(), Config{Rules: parsed.Rules, Log: log, OnEvent: got.add})
	if err != nil {
		t.Fatal(err)
	}
	wrong = append(exact.CompareRules(want, got.exact()), exact.CompareSummary(want, exactSummary(summary), n, counters[0].Seconds())...)
	return wrong, len(got.events)
}

// drawThreshold draws a threshold of any kind over a window.
func drawThreshold(t *rapid.T, d time.Duration) exact.ThresholdSpec {
	th := exact.ThresholdSpec{
		Kind: rapid.SampledFrom([]string{"rate", "share", "jump", "top"}).Draw(t, "kind"),
		N:    rapid.Int64Range(1, 20).Draw(t, "min"), D: d,
		Exit:     exact.ParseRatio(fmt.Sprintf("%d.%02d%%", rapid.IntRange(1, 99).Draw(t, "percent"), rapid.IntRange(0, 99).Draw(t, "hundredths"))),
		Hold:     rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, time.Second, 10 * time.Second}).Draw(t, "hold"),
		CoolDown: rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, 2 * time.Second, 5 * time.Second}).Draw(t, "cool-down"),
	}
	switch th.Kind {
	case "share":
		th.Factor = exact.ParseRatio(rapid.SampledFrom([]string{"0.1%", "20%", "33.3%", "50%", "100%"}).Draw(t, "share"))
	case "jump":
		th.Factor = exact.ParseRatio(rapid.SampledFrom([]string{"1.01x", "1.5x", "2x", "8x"}).Draw(t, "jump"))
	case "top":
		th.Top = rapid.IntRange(1, 3).Draw(t, "top")
	}
	return th
}

// drawRules draws rules of some thresholds each, with exceptions.
func drawRules(t *rapid.T) (rules []exact.RuleSpec) {
	for range rapid.IntRange(1, 4).Draw(t, "rules") {
		r := exact.RuleSpec{By: rapid.SampledFrom([]string{"all", "each", "q"}).Draw(t, "by")}
		known := make(map[string]bool)
		for range rapid.IntRange(1, 3).Draw(t, "thresholds") {
			d := rapid.SampledFrom([]time.Duration{time.Second, 1050 * time.Millisecond, 1500 * time.Millisecond, 7 * time.Second, 10 * time.Second, 15 * time.Second, time.Minute, time.Hour}).Draw(t, "window")
			th := drawThreshold(t, d)
			if id := fmt.Sprint(th.Kind, d); !known[id] {
				known[id] = true
				r.Hot = append(r.Hot, th)
			}
			if th.Kind == "rate" && rapid.Bool().Draw(t, "adjusted") {
				r.Except = append(r.Except, exact.ExceptionSpec{Name: "q", Pattern: rapid.SampledFrom([]string{"a", "b", "*"}).Draw(t, "pattern"), N: rapid.Int64Range(1, 40).Draw(t, "own"), D: d})
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "let pass") == 0 {
			r.Except = append(r.Except, exact.ExceptionSpec{Name: "q", Pattern: rapid.SampledFrom([]string{"b", "c*"}).Draw(t, "passes"), Action: rapid.SampledFrom([]string{"allow", "block"}).Draw(t, "action")})
		}
		rules = append(rules, r)
	}
	return rules
}

// drawTraffic draws bursts of some keys at once, with pauses between, in order.
func drawTraffic(t *rapid.T) (requests []exact.TraceRequest) {
	at := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC).UnixNano() + rapid.Int64Range(0, 2e9).Draw(t, "start")
	grain := rapid.SampledFrom([]int64{1, 1e6, 1e9}).Draw(t, "grain")
	target := rapid.SampledFrom([]string{"/s?q=a", "/s?q=a", "/s?q=b", "/s?q=c1", "/s?q=a&p=1", "/t?q=a", "/t", "/s?p=2&q=a", "/s?q=" + strings.Repeat("x", 600)})
	for range rapid.IntRange(1, 12).Draw(t, "bursts") {
		some := rapid.SliceOfN(target, 1, 4).Draw(t, "keys")
		spread := rapid.SampledFrom([]int64{0, 1e7, 1e8, 3e8, 1e9}).Draw(t, "spread")
		for i := range rapid.IntRange(1, 60).Draw(t, "length") {
			requests = append(requests, exact.TraceRequest{At: at / grain * grain, Method: "GET", Target: some[i*i%len(some)]})
			at += spread
		}
		at += rapid.SampledFrom([]int64{0, 1, 5e7, 1e9, 9e9, 11e9, 65e9, 4e12}).Draw(t, "pause")
	}
	return requests
}

// For random logs and rules, each key is hot and cool when the reference says so, by the same
// threshold and with the same counts.
func TestRandomLogsOfAllKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := drawTraffic(t)
		if wrong, _ := verifyRules(t, stdin(t, bytes.NewReader(jsonLog(t, requests))), all(requests), drawRules(t)); len(wrong) > 0 {
			t.Fatal(strings.Join(wrong, "\n"))
		}
	})
}
