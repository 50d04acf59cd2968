package rules_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// The same parameters make the same key, in whatever order and however escaped.
func ExampleText() {
	fmt.Println(rules.Text("GET /search",
		rules.Param{Name: "q", Value: "phone case"},
		rules.Param{Name: "page", Value: "2"},
	))
	// Output:
	// GET /search?page=2&q=phone%20case
}

func ExampleParseRate() {
	rate, err := rules.ParseRate("60/1m")
	fmt.Println(rate.N, rate.Per, err)
	_, err = rules.ParseRate("fast")
	fmt.Println(err)
	// Output:
	// 60 1m0s <nil>
	// rate "fast": want N/D, for example "200/s" or "60/1m"
}

// Rules built by code are validated like those of a file. All errors are reported, each with the
// path of its field and a hint.
func ExampleRules_Validate() {
	route, err := rules.ParseRoute("GET /search")
	if err != nil {
		fmt.Println(err)
		return
	}
	ruleset := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{{
		ID:    "search-terms",
		Match: rules.Match{Route: route},
		By:    rules.By{Kind: rules.ByNames, Names: []rules.Param{{Name: "q"}, {Name: "token"}}},
		Hot:   []rules.Threshold{rules.NewThreshold(rules.Rate{N: 200, Per: time.Second})},
		Limit: &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 50, Per: time.Second}}, Mode: rules.ModeLimit},
	}}}
	var wrong rules.FieldErrors
	if errors.As(ruleset.Validate(), &wrong) {
		for _, e := range wrong {
			fmt.Printf("%s\n  %v\n  hint: %s\n", e.Field, e, e.Hint)
		}
	}
	// Output:
	// rules[0].by[1]
	//   rule 1 ("search-terms"): by[1] "token": the parameter looks secret and never leaves the process, so it can make no key
	//   hint: if it holds no secret, add its name to secrets.except in the rules file; if it does, add it to secrets.redact: then its keys have a hash of the value
	// rules[0].limit.burst
	//   rule 1 ("search-terms"): limit.burst 0: must be at least 1
	//   hint: lower the burst or raise the rate
}

// A new quota has the burst of its rate.
func ExampleQuota_WithDefaults() {
	q := rules.Quota{Rate: rules.Rate{N: 50, Per: time.Second}}.WithDefaults()
	fmt.Println(q.Algorithm, q.Rate, q.Burst)
	// Output: token_bucket 50/s 50
}
