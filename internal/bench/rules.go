package bench

import (
	"time"

	"github.com/hotparam/hotparam"
)

// route is what all requests are for.
const route = "GET /search"

// unreachable is a threshold at which nothing is hot.
var unreachable = hotparam.Rate{N: hotparam.MaxRate, Per: time.Second}

// searchRules are one rule about the parameters of all requests.
func searchRules(namespace string, hot hotparam.Threshold, limit *hotparam.Limit) *hotparam.Rules {
	r, err := hotparam.ParseRoute(route)
	if err != nil {
		panic(err) // a constant
	}
	return &hotparam.Rules{
		Namespace: namespace,
		Version:   "bench",
		Rules: []hotparam.Rule{{
			ID:    ruleTerms,
			Match: hotparam.Match{Route: r},
			By:    hotparam.By{Kind: hotparam.ByAll},
			Hot:   []hotparam.Threshold{hot},
			Limit: limit,
		}},
	}
}

// lineRules are [searchRules] whose keys are written as "shop.hot_param.b=2&q=1".
func lineRules(hot hotparam.Threshold) *hotparam.Rules {
	rules := searchRules("shop", hot, nil)
	rules.Rules[0].Prefix, rules.Rules[0].ParamsOnly = "shop", true
	return rules
}

// nobody is an aggregator's publisher that discards everything.
type nobody struct{}

func (nobody) Publish(hotparam.Change)       {}
func (nobody) Refresh(int, []hotparam.Hot)   {}
func (nobody) Suspects(int, []hotparam.Hot)  {}
func (nobody) Instances([]hotparam.Instance) {}
