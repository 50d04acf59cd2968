package hotwords_test

import (
	"testing"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/rules"
)

func TestLimitWords(t *testing.T) {
	for limit, want := range map[string]string{
		"50/s": "limit 50/s, burst 50",
		"{rate: 50/s, burst: 100, initial: 0, penalty: 1m}":                                 "limit 50/s, burst 100, initially 0, locked for 1m after a refusal",
		"{rate: 50/s, algorithm: gcra, warm_up: 30s, on_limit: shadow}":                     "limit 50/s, burst 50, gcra, warms up in 30s from 1/3, shadow",
		"{rate: 5/s, burst: 9, algorithm: leaky_bucket, shape: true, wait: 2s}":             "limit 5/s, burst 9, leaky bucket, shaped, wait up to 2s",
		"{rate: 7/30d, algorithm: fixed_window, calendar: month, zone: Europe/Berlin}":      "limit 7/30d, fixed window of a calendar month in Europe/Berlin",
		"{rate: 7/1m, algorithm: sliding_blocks, count_denied: true, scope: share}":         "limit 7/1m, 10 sliding blocks, refused ones count, shared by all instances",
		"{rate: 7/1m, algorithm: sliding_log, scope: exact}":                                "limit 7/1m, sliding log, over all instances by Redis, local when it is away",
		"{rate: 7/1m, algorithm: x_own, serve: {status: 203}}":                              "limit 7/1m, burst 7, x own, serve 203",
		"{concurrency: 8, wait: 2s, queue: 5, priority: {by: tier, first: [gold, silver]}}": "8 at a time, wait up to 2s in a queue of 5, first tier gold, silver",
		"{rate: 700/s, scope: fleet}":                                                       "limit 700/s, burst 700, over all instances by permits held in advance, from Redis, local when it is away",
		"{rate: 7/1m, scope: fleet}":                                                        "limit 7/1m, burst 7, over all instances by Redis, local when it is away",
		"{rate: 7/1m, scope: exact, when_redis_is_away: closed, on_limit: serve}":           "limit 7/1m, burst 7, serve what code gives, over all instances by Redis, closed when it is away",
	} {
		f, err := config.Parse("f.yaml", []byte("rules: [{id: a, match: {route: '*'}, limit: "+limit+"}]"))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := hotwords.Limit(&f.Rules.Rules[0], f.Rules.Rules[0].Limit); got != want {
			t.Errorf("%s: got\n%s, want\n%s", limit, got, want)
		}
	}
}
