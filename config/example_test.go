package config_test

import (
	"fmt"

	"github.com/hotparam/hotparam/config"
)

func ExampleParse() {
	file, err := config.Parse("hotparam.yaml", []byte(`
namespace: shop
rules:
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: 200/s
    limit: {rate: 50/s, burst: 100}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rule := file.Rules.Rules[0]
	fmt.Println(rule.ID, rule.Hot[0].Rate, rule.Limit.Rate, rule.Limit.Burst)
	// Output: search-terms 200/s 50/s 100
}

// All problems of a file are reported at once, each with its place and a remedy.
func ExampleProblems() {
	_, err := config.Parse("hotparam.yaml", []byte(`rules:
  - id: search
    match: {route: "GET /search"}
    hot: {rate: 10/2h}
    limit: {rate: 50/s, algorithm: sliding_log, burst: 100}
`))
	fmt.Println(err)
	// Output:
	// hotparam.yaml:4:17: hot.rate "10/2h": the window must be 1s to 1h
	//       hot: {rate: 10/2h}
	//                   ^
	//   hint: 200/s is 200 within a second, 60/1m is 60 within a minute
	// hotparam.yaml:5:56: limit.burst 100: sliding_log has no burst but the rate's count, 50
	//       limit: {rate: 50/s, algorithm: sliding_log, burst: 100}
	//                                                          ^
	//   hint: lower the burst or raise the rate
}
