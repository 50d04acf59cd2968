package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/bench"
)

type enforceFlags struct {
	instances, samples int
	over               time.Duration
	spread, redis      string
	urgent, json       bool
}

func newBenchEnforce(s streams) *cobra.Command {
	var f enforceFlags
	cmd := &cobra.Command{
		Use:   "enforce",
		Short: "Measure the time from a burst's crossing of the threshold to its limit on every instance",
		Long: `Measure the time to enforce, with real processes: instances of an API, each with
guard, collector and watcher, an aggregator, and a real Redis, over sockets. Each
sample is a burst for a new key: twice the threshold, which is 10 requests within a
second for each instance, evenly within --over, over all instances. The limit is one
request per second.

Time begins with the request that makes the count of all instances reach the
threshold, as it arrives. It ends with the first request that is refused on any
instance, and with the limit in force on the last instance: the key in its hot set,
or its first request refused, whichever it sees first.

Redis is that of --redis or HOTPARAM_REDIS, in a namespace of its own that is deleted
afterwards, else a redis-server of the PATH, started for this and stopped again.

The JSON object has n, p50_ms, p99_ms and max_ms, to the limit in force on the last
instance.`,
		Example: `  hotparam bench enforce --instances 20
  hotparam bench enforce --urgent=false      # at the slow pace: a flush each 100 ms
  hotparam bench enforce --spread zipf --redis redis://127.0.0.1:6379/0
  hotparam bench enforce --json | jq .p99_ms`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runEnforce(cmd.Context(), s, f) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.instances, "instances", 20, "how many instances there are")
	flags.IntVar(&f.samples, "samples", 200, "how many bursts are measured")
	durationVar(flags, &f.over, "over", 50*time.Millisecond, "how long a burst takes")
	flags.StringVar(&f.spread, "spread", "even", "requests over instances: even (they take turns) or zipf (by Zipf's law, exponent 1)")
	flags.BoolVar(&f.urgent, "urgent", true, "flush keys near their threshold every 5 ms; false means every 100 ms, like other keys")
	flags.StringVar(&f.redis, "redis", "", "Redis `URL` (default: a redis-server of its own)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object, and nothing else")
	return cmd
}

// Bounds of a fleet on one machine.
const (
	maxInstances = 200
	maxSamples   = 100_000
	maxOver      = 900 * time.Millisecond // the threshold counts within a second
)

func (f *enforceFlags) config() (bench.EnforceConfig, error) {
	switch {
	case f.instances < 1 || f.instances > maxInstances:
		return bench.EnforceConfig{}, fmt.Errorf("--instances %d: must be 1 to %d", f.instances, maxInstances)
	case f.samples < 1 || f.samples > maxSamples:
		return bench.EnforceConfig{}, fmt.Errorf("--samples %d: must be 1 to %d", f.samples, maxSamples)
	case f.over <= 0 || f.over > maxOver:
		return bench.EnforceConfig{}, fmt.Errorf("--over %v: must be above 0 and at most %v", f.over, maxOver)
	case !isSpread(f.spread):
		return bench.EnforceConfig{}, spreadError(f.spread)
	}
	c := bench.EnforceConfig{
		Instances: f.instances, Samples: f.samples, Over: f.over, Zipf: f.spread == "zipf", Slow: !f.urgent,
	}
	override(&c.Redis, f.redis)
	return c, checkRedisURL(c.Redis)
}

func runEnforce(ctx context.Context, s streams, f enforceFlags) error {
	c, err := f.config()
	if err != nil {
		return usageError(err)
	}
	return runBench(s, "bursts", f.json, func(command []string, step func(done, total int)) (bench.EnforceResult, error) {
		c.Command, c.Progress = command, step
		r, err := bench.Enforce(ctx, c)
		return r, benchError(err, c.Redis, nil)
	}, func(r bench.EnforceResult) error { return r.WriteText(s.out, &c) })
}
