// Package aggregatortest provides rules, and instances whose clocks may be off, for the tests of
// several of the aggregator's packages. It depends on none of them, so that the tests of each can
// use it.
package aggregatortest

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Noon is the time at which tests begin.
var Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// HotRule returns a rule that finds hot keys, with threshold n in a window of per.
func HotRule(id string, n int64, per time.Duration) rules.Rule {
	route, err := rules.ParseRoute("*")
	if err != nil {
		panic(err)
	}
	return rules.Rule{
		ID:    id,
		Match: rules.Match{Route: route},
		By:    rules.By{Kind: rules.ByAll},
		Hot:   []rules.Threshold{rules.NewThreshold(rules.Rate{N: n, Per: per})},
	}
}

// Rules returns a ruleset of the namespace shop.
func Rules(ruleset ...rules.Rule) *rules.Rules {
	return &rules.Rules{Namespace: "shop", Rules: ruleset}
}

// DecoderRules returns a plain rule, a rule that only limits, and a rule with its own prefix.
func DecoderRules() *rules.Rules {
	custom := HotRule("custom", 1, time.Second)
	custom.Prefix = "web.front"
	limit := HotRule("limit-only", 1, time.Second)
	limit.Hot, limit.Limit = nil, &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 1}, Mode: rules.ModeLimit}
	return Rules(HotRule("terms", 1, time.Second), limit, custom)
}
