package bench

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// route is the route of all requests.
const route = "GET /search"

// unreachable is a threshold that no key reaches.
var unreachable = rules.Rate{N: rules.MaxRate, Per: time.Second}

// searchRules returns one rule for the parameters of all requests.
func searchRules(namespace string, hot rules.Threshold, limit *rules.Limit) *rules.Rules {
	r, err := rules.ParseRoute(route)
	if err != nil {
		panic(err) // a constant
	}
	return &rules.Rules{
		Namespace: namespace,
		Version:   "bench",
		Rules: []rules.Rule{{
			ID:    ruleTerms,
			Match: rules.Match{Route: r},
			By:    rules.By{Kind: rules.ByAll},
			Hot:   []rules.Threshold{hot},
			Limit: limit,
		}},
	}
}

// lineRules returns [searchRules] with keys in the form "shop.hot_param.b=2&q=1".
func lineRules(hot rules.Threshold) *rules.Rules {
	rules := searchRules("shop", hot, nil)
	rules.Rules[0].Prefix, rules.Rules[0].ParamsOnly = "shop", true
	return rules
}

// discardPublisher is an aggregator's publisher that discards everything.
type discardPublisher struct{}

func (discardPublisher) Publish(published.Change)       {}
func (discardPublisher) Refresh(int, []published.Hot)   {}
func (discardPublisher) Suspects(int, []published.Hot)  {}
func (discardPublisher) Instances([]published.Instance) {}
