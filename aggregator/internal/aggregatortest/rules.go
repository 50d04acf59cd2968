// Package aggregatortest has what the tests of several of the aggregator's rooms begin
// with: rules, and instances whose clocks may be wrong. It knows no room, so that the tests
// of each can use it.
package aggregatortest

import (
	"time"

	"github.com/hotparam/hotparam"
)

// Noon is when tests begin.
var Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// HotRule returns a rule that finds hot keys: threshold n in a window of per.
func HotRule(id string, n int64, per time.Duration) hotparam.Rule {
	route, err := hotparam.ParseRoute("*")
	if err != nil {
		panic(err)
	}
	return hotparam.Rule{
		ID:    id,
		Match: hotparam.Match{Route: route},
		By:    hotparam.By{Kind: hotparam.ByAll},
		Hot:   []hotparam.Threshold{hotparam.NewThreshold(hotparam.Rate{N: n, Per: per})},
	}
}

// Rules returns the rules of the namespace shop.
func Rules(rules ...hotparam.Rule) *hotparam.Rules {
	return &hotparam.Rules{Namespace: "shop", Rules: rules}
}

// DecoderRules returns a rule, one that limits alone, and one with a prefix of its own.
func DecoderRules() *hotparam.Rules {
	custom := HotRule("custom", 1, time.Second)
	custom.Prefix = "web.front"
	limit := HotRule("limit-only", 1, time.Second)
	limit.Hot, limit.Limit = nil, &hotparam.Limit{Quota: hotparam.Quota{Rate: hotparam.Rate{N: 1, Per: time.Second}, Burst: 1}, Mode: hotparam.ModeLimit}
	return Rules(HotRule("terms", 1, time.Second), limit, custom)
}
