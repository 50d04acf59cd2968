package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/internal/bench"
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
	}, func(r bench.EnforceResult) error { return enforceText(s, f, r) })
}

func enforceText(s streams, f enforceFlags, r bench.EnforceResult) error {
	pace := "urgent flushes"
	if !f.urgent {
		pace = "no urgent flushes"
	}
	fmt.Fprintf(s.out, "Time to enforce: %d instances, hot at %d/s, %d bursts of %d requests in %v, %s over the instances, %s\n\n",
		f.instances, 10*f.instances, r.N, 20*f.instances, f.over, map[string]string{"even": "evenly", "zipf": "by Zipf's law"}[f.spread], pace)
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "from the request that reached the threshold to\tP50\tP99\tMAX")
	for _, row := range []struct {
		to    string
		times []time.Duration
	}{{"the first request refused on any instance", r.First}, {"the limit in force on the last instance", r.Last}} {
		ms := func(p float64) string {
			return fmt.Sprintf("%.1f ms", float64(bench.Percentile(row.times, p).Microseconds())/1000)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.to, ms(50), ms(99), ms(100))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Missed > 0 {
		fmt.Fprintf(s.out, "%d bursts were not limited on every instance within %v\n", r.Missed, bench.EnforceLimit)
	}
	fmt.Fprintln(s.out, "\nto the limit in force on the last instance:")
	return histogramText(s, bench.Histogram(r.Last, 20))
}

func histogramText(s streams, buckets []bench.Bucket) error {
	highest := 0
	for _, b := range buckets {
		highest = max(highest, b.N)
	}
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, b := range buckets {
		count := ""
		if b.N > 0 {
			count = fmt.Sprint(b.N)
		}
		fmt.Fprintf(t, "  from %v\t%s\t%s\n", b.From, count, gauge(float64(b.N), float64(highest)))
	}
	return t.Flush()
}
