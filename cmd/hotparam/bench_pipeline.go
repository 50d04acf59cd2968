package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/bench"
	"github.com/hotparam/hotparam/hotkeys"
)

type pipelineFlags struct {
	transport, redis string
	brokers          []string
	rate, instances  int
	length           time.Duration
	json             bool
}

func newBenchPipeline(s streams) *cobra.Command {
	var f pipelineFlags
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Measure the whole chain over UDP or Kafka: events, processor time, lag, loss",
		Long: `Measure the whole chain with real processes: instances, each a collector with guard
and watcher, then UDP or Kafka, an aggregator, a publisher, a real Redis, and back
to the watchers. An event is one count that an instance gives its collector: the
chain begins there, not at a request (see "bench request"). Keys are 100,000 values
by Zipf's law with exponent 1.1, the same for both transports; those with half a
percent of all events or more are hot.

cpu_seconds is the user and system time of the instances and of the aggregator,
without broker and Redis, from the first event until all that came is counted. In
the instances it includes what gives them the events: a look-up in a table, and
waking up a hundred times a second, together less than a tenth of it over UDP. To
compare the transports, run it with each, at the same rate.

lag_ms is the 99th percentile of the time from an event's count to the detector
having it in its window. Probes measure it: some events are keys of their own
that say when they were counted, and that the aggregator alone knows to be hot at
once. lost is how many events no window has in the end, for whatever reason: lost
on the way, dropped, too late, or held back by a collector whose budget of
lines was full for longer than a window. Below 0 are events counted twice.

Kafka is that of --brokers (plain, without a password), with a topic and a group that
are deleted afterwards, else an embedded one in a process of its own. Redis is that of
--redis or HOTPARAM_REDIS, in a namespace of its own that is deleted afterwards, else
a redis-server of the PATH.

The JSON object has events, seconds, events_per_second, cpu_seconds, lag_ms, lost.`,
		Example: `  hotparam bench pipeline --transport statsd
  hotparam bench pipeline --transport kafka
  hotparam bench pipeline --transport kafka --brokers k1:9092,k2:9092 --rate 500000 --instances 20
  hotparam bench pipeline --transport kafka --json | jq .cpu_seconds`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPipeline(cmd.Context(), s, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.transport, "transport", bench.TransportStatsD, "transport of counts: statsd (UDP) or kafka")
	flags.IntVar(&f.rate, "rate", 200_000, "events per second over all instances")
	flags.IntVar(&f.instances, "instances", 6, "how many instances there are")
	durationVar(flags, &f.length, "for", 10*time.Second, "how long there are events")
	flags.StringSliceVar(&f.brokers, "brokers", nil, "`host:port` of some brokers (default: an embedded Kafka)")
	flags.StringVar(&f.redis, "redis", "", "Redis `URL` (default: a redis-server of its own)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object, and nothing else")
	return cmd
}

// Bounds of a pipeline on one machine.
const (
	maxRate    = 100_000_000
	leastFor   = time.Second
	longestFor = time.Hour
)

func (f *pipelineFlags) config() (c bench.PipelineConfig, err error) {
	switch {
	case f.transport != bench.TransportStatsD && f.transport != bench.TransportKafka:
		return c, fmt.Errorf("--transport %q: want statsd or kafka", f.transport)
	case f.rate < 1 || f.rate > maxRate:
		return c, fmt.Errorf("--rate %d: must be 1 to %d", f.rate, maxRate)
	case f.instances < 1 || f.instances > maxInstances:
		return c, fmt.Errorf("--instances %d: must be 1 to %d", f.instances, maxInstances)
	case f.length < leastFor || f.length > longestFor:
		return c, fmt.Errorf("--for %v: must be %v to %v", f.length, leastFor, longestFor)
	case len(f.brokers) > 0 && f.transport != bench.TransportKafka:
		return c, errors.New("--brokers goes with --transport kafka")
	}
	for _, broker := range f.brokers {
		if _, _, err := net.SplitHostPort(broker); err != nil {
			return c, fmt.Errorf("--brokers %q: want host:port, separated by commas", broker)
		}
	}
	c = bench.PipelineConfig{
		Transport: f.transport, Rate: f.rate, Instances: f.instances, For: f.length,
		Brokers: slices.Clone(f.brokers),
	}
	override(&c.Redis, f.redis)
	return c, checkRedisURL(c.Redis)
}

// checkRedisURL checks a URL, if there is one, without connecting.
func checkRedisURL(url string) error {
	if url == "" {
		return nil
	}
	client, err := hotkeys.NewClient(url)
	if err != nil {
		return err
	}
	return client.Close()
}

func runPipeline(ctx context.Context, s streams, f pipelineFlags) error {
	c, err := f.config()
	if err != nil {
		return usageError(err)
	}
	return runBench(s, "seconds", f.json, func(command []string, step func(done, total int)) (bench.PipelineResult, error) {
		c.Command, c.Progress = command, step
		r, err := bench.Pipeline(ctx, c)
		return r, benchError(err, c.Redis, c.Brokers)
	}, func(r bench.PipelineResult) error { return r.WriteText(s.out, &c) })
}
