package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/bench"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/rules"
)

type fleetFlags struct {
	instances           int
	rate, spread, redis string
	burst               int64
	demand              []float64
	lasts               time.Duration
	json                bool
}

func newBenchFleet(s streams) *cobra.Command {
	var f fleetFlags
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Measure how instances hold one limit together, with scope: fleet and with scope: exact",
		Long: `Measure how instances hold one limit on one hot key together, with scope: fleet
and with scope: exact. The instances are in this process, each with its own client
of a real Redis. Requests arrive at random times, whether earlier ones were answered
or not.

USE compares the admitted requests with one bucket that decides at once. OVER is by
how many requests they exceeded burst + rate × w in the worst window w, judged at
the time of each answer. A late answer makes that more than 0 for scope: exact, too.
CALLS are round trips to Redis, and SETTLED those that no request made. P50 and P99
are the times that requests wait for their decision.

Redis is that of --redis or HOTPARAM_REDIS, in a namespace of its own that is deleted
afterwards, else a redis-server of the PATH, started for this and stopped again.

The JSON object has rows, one for each demand and scope.`,
		Example: `  hotparam bench fleet
  hotparam bench fleet --demand 0.8,20 --spread zipf
  hotparam bench fleet --instances 50 --rate 20000/s --burst 2000
  hotparam bench fleet --json | jq '.rows[] | select(.demand == 3) | .overshoot'`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runFleet(cmd.Context(), s, f) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.instances, "instances", 20, "how many instances there are")
	flags.StringVar(&f.rate, "rate", "5000/s", "the limit's rate")
	flags.Int64Var(&f.burst, "burst", 500, "the limit's burst")
	flags.Float64SliceVar(&f.demand, "demand", []float64{0.8, 1.2, 3}, "requests, in multiples of the rate")
	flags.StringVar(&f.spread, "spread", "even", "requests over instances: even or zipf (by Zipf's law, exponent 1)")
	durationVar(flags, &f.lasts, "for", 5*time.Second, "how long a measurement takes")
	flags.StringVar(&f.redis, "redis", "", "Redis `URL` (default: a redis-server of its own)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object, and nothing else")
	return cmd
}

// Bounds of a measurement of a limit.
const (
	maxDemand = 100
	maxAsked  = 5_000_000 // requests in a measurement, which are kept
	maxFor    = 10 * time.Minute
)

func (f *fleetFlags) config() (yardstick.FleetConfig, error) {
	rate, err := rules.ParseRate(f.rate)
	switch {
	case err != nil:
		return yardstick.FleetConfig{}, fmt.Errorf("--rate %s: %w", f.rate, err)
	case f.instances < 1 || f.instances > maxInstances:
		return yardstick.FleetConfig{}, fmt.Errorf("--instances %d: must be 1 to %d", f.instances, maxInstances)
	case f.burst < 1 || f.burst > rules.MaxRate:
		return yardstick.FleetConfig{}, fmt.Errorf("--burst %d: must be 1 to %d", f.burst, rules.MaxRate)
	case f.lasts <= 0 || f.lasts > maxFor:
		return yardstick.FleetConfig{}, fmt.Errorf("--for %v: must be above 0 and at most %v", f.lasts, maxFor)
	case !isSpread(f.spread):
		return yardstick.FleetConfig{}, spreadError(f.spread)
	case len(f.demand) == 0:
		return yardstick.FleetConfig{}, fmt.Errorf("--demand: want one number or more")
	}
	for _, d := range f.demand {
		if !(d > 0 && d <= maxDemand) { // also NaN
			return yardstick.FleetConfig{}, fmt.Errorf("--demand %v: must be above 0 and at most %d", d, maxDemand)
		}
		if asked := d * float64(rate.N) * float64(f.lasts) / float64(rate.Per); asked > maxAsked {
			return yardstick.FleetConfig{}, fmt.Errorf("--rate %v × --demand %v in --for %v: %.0f requests, at most %d", rate, d, f.lasts, asked, maxAsked)
		}
	}
	c := yardstick.FleetConfig{
		Instances: f.instances, Quota: rules.Quota{Rate: rate, Burst: f.burst}, Demands: f.demand, Zipf: f.spread == "zipf", For: f.lasts,
	}
	return c, nil
}

func runFleet(ctx context.Context, s streams, f fleetFlags) error {
	c, err := f.config()
	url := ""
	override(&url, f.redis)
	if err := cmp.Or(err, checkRedisURL(url)); err != nil {
		return usageError(err)
	}
	return runBench(s, "measurements", f.json, func(command []string, step func(done, total int)) (yardstick.FleetResult, error) {
		c.Progress = step
		r, err := bench.Fleet(ctx, command, url, c)
		return r, benchError(err, url, nil)
	}, func(r yardstick.FleetResult) error { return r.WriteText(s.out, &c) })
}
