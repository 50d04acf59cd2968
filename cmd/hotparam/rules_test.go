package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/config"
)

func TestLint(t *testing.T) {
	bad := write(t, strings.Replace(goodRules, "200/s", "200", 1))
	t.Run("good", func(t *testing.T) {
		r := hotparamCommand(t, "rules", "lint", exampleConfig)
		r.exits(t, exitOK, "good, ", " rules, version ")
		if r.out != "" {
			t.Errorf("stdout: %q, want none", r.out)
		}
	})
	t.Run("in words", func(t *testing.T) {
		path := write(t, wordyRules)
		r := hotparamCommand(t, "rules", "lint", path)
		r.exits(t, exitOK)
		if _, words, _ := strings.Cut(r.err, "\n"); words != rulesInWords {
			t.Errorf("got\n%s\nwant\n%s", words, rulesInWords)
		}
	})
	t.Run("good json", func(t *testing.T) {
		r := hotparamCommand(t, "rules", "lint", "--json", exampleConfig)
		r.exits(t, exitOK)
		if strings.Count(r.out, `"severity"`) != 1 || !strings.Contains(r.out, "no limit by address") {
			t.Errorf("stdout: %q, want the warning of its logins alone", r.out)
		}
	})
	t.Run("bad", func(t *testing.T) {
		hotparamCommand(t, "rules", "lint", bad).exits(t, exitConfig, bad+":3:", "hot.rate", "^")
	})
	t.Run("bad json", func(t *testing.T) {
		r := hotparamCommand(t, "rules", "lint", "--json", bad)
		if r.code != exitConfig || r.err != "" {
			t.Errorf("exit code %d, stderr %q, want %d and none", r.code, r.err, exitConfig)
		}
		var problems config.Problems
		decodeJSON(t, r.out, &problems)
		if len(problems) != 1 || problems[0].File != bad || problems[0].Line != 3 || problems[0].Column == 0 || problems[0].Severity != config.SeverityError ||
			!strings.Contains(problems[0].Message, "hot.rate") {
			t.Errorf("problems: %+v, want hot.rate in line 3", problems)
		}
	})
	t.Run("warnings", func(t *testing.T) {
		path := write(t, strings.Replace(goodRules, "GET /search", "get /search", 1))
		r := hotparamCommand(t, "rules", "lint", path)
		r.exits(t, exitOK, "good, 1 rule, ", path+":3:", ": warning: match.route \"get /search\"", "hint: did you mean \"GET /search\"?")

		r = hotparamCommand(t, "rules", "lint", "--json", path)
		r.exits(t, exitOK)
		var problems config.Problems
		decodeJSON(t, r.out, &problems)
		if len(problems) != 1 || problems[0].Severity != config.SeverityWarning || problems[0].Line != 3 || problems[0].Hint != "did you mean \"GET /search\"?" {
			t.Errorf("problems: %+v, want the warning", problems)
		}
	})
	t.Run("no file", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "none.yaml")
		hotparamCommand(t, "rules", "lint", missing).exits(t, exitConfig, missing, "no such file")
	})
}

const (
	wordyRules = `rules:
  - {id: health, match: {route: "GET /healthz"}, action: ignore}
  - {id: whole, match: {route: "*", query: {a: "*", b: x}}, limit: {rate: 60/1m, on_limit: shadow}}
  - {id: terms, match: {route: "GET /u/{id}"}, by: [q, "path:id"], hot: {rate: 200/s, cool_down: 1s}, limit: 50/s, allow: {q: [a, b]}, block: {q: c}}
  - {id: shares, match: {route: "*"}, hot: [20%, {jump: 8x, min: 50/10s, exit: 50%, hold: 0s}, {top: 3, hold: 90s}]}
  - {id: weights, match: {route: "*"}, by: {combinations: [q, r]}, count: bytes, hot: 100MB/1m, limit: {rate: 512KiB/s, burst: 1500}, except: [{values: {q: a}, limit: 1/s}]}
  - {id: times, match: {route: "*"}, by: each, count: ms, hot: 30s/10s}
  - {id: costs, match: {route: "*"}, by: combinations, count: units, hot: 30/1h}
`
	rulesInWords = `  counts: StatsD to 127.0.0.1:8125
  health: GET /healthz: exempt from all rules
  whole: *?a=*&b=x: limit 60/1m, burst 60, shadow, on each instance
  terms: GET /u/{id} by q, path:id: hot at 200/s (cool below 160, for 1s, after 10s at the earliest); limit 50/s, burst 50, over all instances (up to 2 hold permits in advance; with more, each request asks Redis: the rate does not bring each a permit in 50ms); exceptions: 2 allowed, 1 blocked
  shares: * by all parameters: hot at 20% of the route and 10/s (cool below 80% of that, for 5s, after 10s at the earliest) or at 8x the baseline and 50/10s (cool below 50% of that, for 5s) or at a place among the top 3 and 10/s (cool below 80% of that, for 5s, after 1m30s at the earliest); listed only
  weights: * by combinations of q, r: hot at 100MB/1m (cool below 80MB, for 5s, after 10s at the earliest); limit 512KiB/s, burst 1500B, over all instances (they hold permits in advance); exceptions: 1 adjusted
  times: * by each parameter: hot at 30s/10s (cool below 24s, for 5s, after 10s at the earliest); listed only
  costs: * by combinations of all parameters: hot at 30 units/1h (cool below 24 units, for 5s, after 10s at the earliest); listed only
`
)

// The exit is printed as the file has it, however low min is.
func TestExitInWords(t *testing.T) {
	for hot, want := range map[string]string{
		"{share: 20%, min: 2/s}":                     "hot at 20% of the route and 2/s (cool below 80% of that",
		"{jump: 8x, min: 3/s, exit: 50%}":            "hot at 8x the baseline and 3/s (cool below 50% of that",
		"{jump: 1.0625x, min: 7/s, exit: 99.95%}":    "hot at 1.0625x the baseline and 7/s (cool below 99.95% of that",
		"{top: 3, min: 1/s, exit: 33.3333333%}":      "hot at a place among the top 3 and 1/s (cool below 33.3333333% of that",
		"{share: 0.0000001%, min: 1/s, exit: 1.25%}": "hot at 0.0000001% of the route and 1/s (cool below 1.25% of that",
	} {
		path := write(t, "rules: [{id: a, match: {route: '*'}, by: all, hot: "+hot+"}]")
		if r := hotparamCommand(t, "rules", "lint", path); r.code != exitOK || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, %s\nwant %s", hot, r.code, r.err, want)
		}
	}
}

// For a jump over days, lint explains when the days are not known yet.
func TestLintSaysWhenDaysAreNotKnown(t *testing.T) {
	const file = "namespace: shop\nrules: [{id: a, match: {route: '*'}, by: all, hot: %s}]"
	const want = "jumps over days of a: on the first day, and after a change of id, by or count, they are over the recent past until the same hour of a day before is known; aggregators keep the hours in Redis, as hotparam-days:{shop}:*"
	for hot, is := range map[string]bool{"[{jump: 4x/1m}, {jump: 4x/1m, over: day}]": true, "{jump: 4x/1m}": false} {
		r := hotparamCommand(t, "rules", "lint", write(t, fmt.Sprintf(file, hot)))
		if r.code != exitOK || strings.Contains(r.err, want) != is {
			t.Errorf("%s: exit code %d, %s\nwant the notice: %v", hot, r.code, r.err, is)
		}
	}
}
