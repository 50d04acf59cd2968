package hotwords_test

import (
	"strings"
	"testing"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/hotwords"
)

func TestLimitWords(t *testing.T) {
	for limit, want := range map[string]string{
		"50/s": "limit 50/s, burst 50, on each instance",
		"{rate: 50/s, burst: 100, initial: 0, penalty: 1m}":                                 "limit 50/s, burst 100, initially 0, locked for 1m after a refusal, on each instance",
		"{rate: 50/s, algorithm: gcra, warm_up: 30s, on_limit: shadow}":                     "limit 50/s, burst 50, gcra, warms up in 30s from 1/3, shadow, on each instance",
		"{rate: 5/s, burst: 9, algorithm: leaky_bucket, shape: true, wait: 2s}":             "limit 5/s, burst 9, leaky bucket, shaped, wait up to 2s, on each instance",
		"{rate: 7/30d, algorithm: fixed_window, calendar: month, zone: Europe/Berlin}":      "limit 7/30d, fixed window of a calendar month in Europe/Berlin, on each instance",
		"{rate: 7/1m, algorithm: sliding_blocks, count_denied: true, scope: share}":         "limit 7/1m, 10 sliding blocks, refused ones count, shared by all instances",
		"{rate: 7/1m, algorithm: sliding_log, scope: exact}":                                "limit 7/1m, sliding log, over all instances (each request asks Redis)",
		"{rate: 7/1m, algorithm: x_own, serve: {status: 203}}":                              "limit 7/1m, burst 7, x own, serve 203, on each instance",
		"{concurrency: 8, wait: 2s, queue: 5, priority: {by: tier, first: [gold, silver]}}": "8 at a time, wait up to 2s in a queue of 5, first tier gold, silver, on each instance",
		"{rate: 700/s, scope: fleet}":                                                       "limit 700/s, burst 700, over all instances (each request asks Redis: the rule has no hot)",
		"{rate: 7/1m, scope: exact, when_redis_is_away: closed, on_limit: serve}":           "limit 7/1m, burst 7, serve what code gives, over all instances (each request asks Redis), closed while Redis is unavailable",
	} {
		compareLimit(t, "", limit, want)
	}
}

// Limits of hot keys say whether instances hold their permits, and why not.
func TestFleetLimitWords(t *testing.T) {
	const long = "; with more, each request asks Redis: the rate does not bring each a permit in 50ms)"
	const asks = "over all instances (each request asks Redis: "
	for limit, want := range map[string]string{
		"{rate: 700/s, scope: fleet}":                 "limit 700/s, burst 700, " + "over all instances (up to 35 hold permits in advance" + long,
		"{rate: 1000/s, burst: 100, scope: fleet}":    "limit 1000/s, burst 100, over all instances (up to 5 hold permits in advance; with more, each request asks Redis: the rate does not bring each 5 permits in 25ms)",
		"{rate: 1000/s, burst: 50, scope: fleet}":     "limit 1000/s, burst 50, " + asks + "the burst is less than a tenth of the rate per second)",
		"{rate: 7/1m, scope: fleet}":                  "limit 7/1m, burst 7, " + asks + "the rate does not bring each a permit in 50ms)",
		"{rate: 700/s, penalty: 1m, scope: fleet}":    "limit 700/s, burst 700, locked for 1m after a refusal, " + asks + "penalty needs it)",
		"{concurrency: 8, rate: 700/s, scope: fleet}": "limit 700/s, burst 700, 8 at a time, " + "over all instances (up to 35 hold permits in advance" + long,
	} {
		compareLimit(t, "by: [q], hot: 10/s, ", limit, want)
	}
	// Each class of priority has a stock of its own.
	compareLimit(t, "by: [q], hot: 10/s, ", "{rate: 700/s, scope: fleet, priority: {by: tier, first: [gold]}}", "limit 700/s, burst 700, first tier gold, over all instances (up to 17 hold permits in advance"+long)
	// Limits of hot keys have the scope by default, unless it does not fit.
	for limit, want := range map[string]string{
		"700/s":                                 "limit 700/s, burst 700, " + "over all instances (up to 35 hold permits in advance" + long,
		"{rate: 700/s, scope: instance}":        "limit 700/s, burst 700, on each instance",
		"{concurrency: 8}":                      "8 at a time, over all instances (they hold permits in advance)",
		"{rate: 700/s, algorithm: sliding_log}": "limit 700/s, sliding log, on each instance, because scope: fleet goes with token_bucket, gcra and leaky_bucket, not with sliding_log",
	} {
		compareLimit(t, "by: [q], hot: 10/s, ", limit, want)
	}
	compareLimit(t, "by: [q], count: bytes, hot: 10/s, ", "{rate: 1MB/s, scope: fleet}", "limit 1MB/s, burst 1MB, over all instances (they hold permits in advance)")
}

func TestCostWords(t *testing.T) {
	for rule, want := range map[string]string{
		"hot: {cost: auto}, limit: {concurrency: auto}":                                       "hot when it slows the others down (cool once it no longer does); as many at a time as leave the others as fast as before, over all instances (they hold permits in advance)",
		"hot: {cost: auto}, backend: orders-db, limit: {concurrency: auto, on_limit: shadow}": "hot when it slows the others down (cool once it no longer does); together with the rules of orders-db; as many at a time as leave the others as fast as before, shadow, over all instances (they hold permits in advance)",
		"hot: {cost: auto}": "hot when it slows the others down (cool once it no longer does); listed only; not held, so only suspected",
	} {
		f, err := config.Parse("f.yaml", []byte("rules: [{id: a, match: {route: GET /a}, by: [q], "+rule+"}]"))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := hotwords.Rule(&f.Rules.Rules[0]); got != "a: GET /a by q: "+want {
			t.Errorf("%s: got\n%s, want\n%s", rule, got, want)
		}
	}
}

func TestOnHotRuleWords(t *testing.T) {
	for onHot, want := range map[string]string{
		"{}":                              "on_hot: identical requests join for up to 300ms, status 200, up to 1MiB each and 64MiB in all",
		"{coalesce: false, cache: 500ms}": "on_hot: from memory for 500ms, status 200, up to 1MiB each and 64MiB in all",
		`{cache: 1s, stale: 1m, wait: 2s, max: 100KB, total: 8MiB, vary: ["header:accept-language", "cookie:currency"], status: [404, 200]}`: "on_hot: identical requests join for up to 2s, from memory for 1s, stale for 1m, " +
			"also by header:accept-language and cookie:currency, status 200 or 404, up to 100KB each and 8MiB in all",
	} {
		f, err := config.Parse("f.yaml", []byte("rules: [{id: a, match: {route: GET /a}, by: [q], hot: 10/s, on_hot: "+onHot+"}]"))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := hotwords.Rule(&f.Rules.Rules[0]); !strings.HasSuffix(got, "; listed only; "+want) {
			t.Errorf("%s: got\n%s, want\n%s", onHot, got, want)
		}
	}
}

func compareLimit(t *testing.T, head, limit, want string) {
	t.Helper()
	f, err := config.Parse("f.yaml", []byte("rules: [{id: a, match: {route: '*'}, "+head+"limit: "+limit+"}]"))
	if err != nil {
		t.Error(err)
		return
	}
	if got := hotwords.Limit(&f.Rules.Rules[0], f.Rules.Rules[0].Limit); got != want {
		t.Errorf("%s: got\n%s, want\n%s", limit, got, want)
	}
}
