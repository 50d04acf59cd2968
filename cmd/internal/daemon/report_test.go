package daemon

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// The metric of the bound exists only for limits that burst + rate × time bounds.
func TestBoundedRules(t *testing.T) {
	limit := func(a rules.Algorithm, mode rules.Mode) *rules.Limit {
		return &rules.Limit{Quota: rules.Quota{Algorithm: a, Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 10}, Mode: mode}
	}
	bucket := limit(rules.GCRA, rules.ModeLimit)
	for name, c := range map[string]struct {
		rule rules.Rule
		want bool
	}{
		"bucket":                 {rules.Rule{Limit: bucket}, true},
		"shadow":                 {rules.Rule{Limit: limit("", rules.ModeShadow), Except: []rules.Exception{{}, {Limit: bucket}}}, true},
		"window":                 {rules.Rule{Limit: limit(rules.FixedWindow, rules.ModeLimit)}, false},
		"wait":                   {rules.Rule{Limit: limit("", rules.ModeWait)}, false},
		"bytes":                  {rules.Rule{Limit: bucket, Count: rules.Bytes}, false},
		"window in an exception": {rules.Rule{Limit: bucket, Except: []rules.Exception{{Limit: limit(rules.SlidingLog, rules.ModeLimit)}}}, false},
	} {
		if got := isBounded(&c.rule); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
