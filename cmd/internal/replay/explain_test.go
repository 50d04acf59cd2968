package replay

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/cmd/internal/demo/data"
	"github.com/hotparam/hotparam/rules"
)

// The explanation agrees with the reported events: its steps are the events, and its panes hold
// all counts.
func TestExplain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	th := exact.NewThreshold(20, time.Second)
	events := collect{t: t}
	var keys []KeyReport
	limit := &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 5}, Mode: rules.ModeLimit}
	if _, err := Run(t.Context(), Config{
		Rules: testRules(t, "cik", th, limit), Log: stdin(t, bytes.NewReader(data.EDGAR)), OnEvent: events.add,
		OnKey: func(k KeyReport) { keys = append(keys, k) },
	}); err != nil {
		t.Fatal(err)
	}
	if len(keys) != 6 {
		t.Fatalf("%d keys are reported, want the 6 that were hot", len(keys))
	}
	for _, key := range keys {
		var all []Explanation
		_, err := Run(t.Context(), Config{
			Rules: testRules(t, "cik", th, limit), Log: stdin(t, bytes.NewReader(data.EDGAR)),
			Explain: rules.Key{Rule: key.Rule, Text: key.Key}, OnExplained: func(x Explanation) { all = append(all, x) },
		})
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %v, %d explanations", key.Key, err, len(all))
		}
		x := all[0]
		if x.Hot != key.Hot || x.Seconds != key.Seconds || x.Limited != key.Limited || key.Hot == 0 {
			t.Errorf("explained %+v, reported %+v", x, key)
		}
		trial := x.Thresholds[0]
		var told []string
		for _, e := range events.events {
			if e.Key == key.Key {
				told = append(told, fmt.Sprint(e.Event, " ", e.Time, " ", e.Low))
			}
		}
		var steps []string
		for _, s := range trial.Steps {
			word := map[string]string{"entered": "hot", "left": "cool"}[s.Decision]
			steps = append(steps, fmt.Sprint(word, " ", s.Time.Format(time.RFC3339Nano), " ", s.Low))
		}
		if fmt.Sprint(steps[:len(told)]) != fmt.Sprint(told) {
			t.Errorf("%s: steps %q, events %q", key.Key, steps, told)
		}
		counted := int64(0)
		for _, p := range trial.Panes {
			counted += p.Counted
			if p.Low < p.Counted || p.High == nil || *p.High < p.Low || *p.Enter != 20 || p.Exit != 16 {
				t.Errorf("%s: pane %+v", key.Key, p)
			}
		}
		if counted != x.Counted || counted == 0 {
			t.Errorf("%s: the panes hold %d of %d", key.Key, counted, x.Counted)
		}
	}
}

func TestExplainAKeyThatNeverCame(t *testing.T) {
	var requests []exact.TraceRequest
	for i, q := range []string{"phone", "phones", "tree", "bone", "telephone", "xyz", "phono", "iphone"} {
		requests = append(requests, exact.TraceRequest{At: 1_700_000_000e9 + int64(i), Method: "GET", Target: "/s?q=" + q})
	}
	_, err := Run(t.Context(), Config{
		Rules: testRules(t, "q", exact.NewThreshold(5, time.Second), nil), Log: stdin(t, bytes.NewReader(jsonLog(t, requests))),
		Explain: rules.Key{Text: "GET /s?q=phonee"}, OnExplained: func(x Explanation) { t.Errorf("explained %+v", x) },
	})
	var missing *NoSuchKey
	if !errors.As(err, &missing) || len(missing.Nearest) != maxNearest {
		t.Fatalf("%v", err)
	}
	var texts []string
	for _, k := range missing.Nearest {
		texts = append(texts, k.Text[len("GET /s?q="):])
	}
	if got := fmt.Sprint(texts); got != "[phone phones phono iphone bone]" {
		t.Errorf("nearest are %v", got)
	}
}

func TestCompare(t *testing.T) {
	before := []KeyReport{{Rule: "r", Key: "same", Hot: 1, Seconds: 3, Limited: 9}, {Rule: "r", Key: "less", Hot: 1, Seconds: 5, Limited: 7}, {Rule: "r", Key: "gone", Hot: 1, Seconds: 1}}
	after := []KeyReport{{Rule: "r", Key: "same", Hot: 1, Seconds: 3, Limited: 9}, {Rule: "r", Key: "less", Hot: 1, Seconds: 5, Limited: 2}, {Rule: "all", Limited: 40}}
	var got []string
	for _, d := range Compare(before, after) {
		got = append(got, fmt.Sprint(d.Rule, " ", d.Key, " ", d.Changed, " ", d.Before.Limited, " ", d.After.Limited))
	}
	if want := "[all  true 0 40 r less true 7 2 r gone true 0 0 r same false 9 9]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// Refused requests are reported for the key, or the rule, that refused them.
func TestReportsOfRulesWithoutHot(t *testing.T) {
	var requests []exact.TraceRequest
	for i := range int64(100) {
		requests = append(requests, exact.TraceRequest{At: 1_700_000_000e9 + i*1e7, Method: "GET", Target: "/s?q=1"})
	}
	all := testRules(t, "q", exact.NewThreshold(1000, time.Second), nil)
	limit := &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 10}, Mode: rules.ModeLimit}
	all.Rules = append(all.Rules, rules.Rule{ID: "whole", Match: all.Rules[0].Match, Limit: limit})
	var got []KeyReport
	summary, err := Run(t.Context(), Config{Rules: all, Log: stdin(t, bytes.NewReader(jsonLog(t, requests))), OnKey: func(k KeyReport) { got = append(got, k) }})
	if err != nil || len(got) != 1 || got[0] != (KeyReport{Rule: "whole", Limited: summary.Limited}) || summary.Limited < 80 {
		t.Errorf("%v, %+v, reported %+v", err, summary, got)
	}
}
