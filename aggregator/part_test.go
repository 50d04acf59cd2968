package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// A rule that compares keys with each other is entirely in one part, and the parts together hold
// no more than the memory.
func TestRulesThatCompareKeysHaveOneHome(t *testing.T) {
	share, top, combined := hotRule("share", 5, time.Second), hotRule("top", 5, time.Second), hotRule("combined", 5, time.Second)
	share.Hot[0].Kind, share.Hot[0].Factor = rules.Share, rules.Percent(50)
	top.Hot[0].Kind, top.Hot[0].Top = rules.Top, 1
	combined.By.Kind = rules.ByCombinations
	rules := testRules(hotRule("plain", 5, time.Second), share, top, combined)
	const parts, memory = 3, 4 << 20
	var detectors []*Detector
	for part := range parts {
		detectors = append(detectors, NewDetector(DetectorConfig{Rules: rules, Publisher: newRecorder(), Memory: memory, Part: part, Parts: parts}))
	}
	budget := int64(0)
	for i := range rules.Rules {
		var at []int
		for part, d := range detectors {
			if r := d.rules[i]; r != nil {
				at = append(at, part)
				budget += r.views[0].Budget()
			}
		}
		want := "[0 1 2]"
		if rules.Rules[i].Whole() {
			want = fmt.Sprint([]int{i % parts})
		}
		if fmt.Sprint(at) != want {
			t.Errorf("rule %d is in parts %v, want %v", i, at, want)
		}
	}
	if budget > memory || budget < memory*9/10 {
		t.Errorf("windows of %d bytes, want about %d", budget, memory)
	}
}

func TestExceptionsSetTheLimitOfAHotKey(t *testing.T) {
	rule := hotRule("r", 100, time.Second)
	rule.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 9}, Mode: rules.ModeLimit}
	rule.Except = []rules.Exception{
		{Values: []rules.QueryMatch{{Name: "q", Value: "red*"}}, Rate: rules.Rate{N: 10, Per: time.Second},
			Limit: &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 2}, Mode: rules.ModeShadow}},
		{Values: []rules.QueryMatch{{Name: "q", Value: "ours"}}, Action: rules.Allow},
	}
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
	for _, text := range []string{"GET /s?q=red%20shoes", "GET /s?q=blue", "GET /s?q=ours"} {
		for range 60 {
			d.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: 2, When: noon})
		}
	}
	hot := out.hot()
	red, blue := hot[rules.Key{Rule: "r", Text: "GET /s?q=red%20shoes"}], hot[rules.Key{Rule: "r", Text: "GET /s?q=blue"}]
	if len(hot) != 2 || red.Low != 10 || red.Burst != 2 || red.Mode != rules.ModeShadow || blue.Low != 100 || blue.Burst != 9 {
		t.Errorf("hot are %+v", hot)
	}
}
