// Chaos injects faults into a fleet of real processes. An oracle outside of the fleet judges what
// clients see.
//
//	go run ./checks/chaos/cmd/chaos [-seed N] [-duration 30m] [-scenario all]
//		[-redis single|sentinel|cluster] [-counts statsd|kafka] [-only KIND,...] [-soak]
//
// It prints each event and each violation as it comes, and exits with 1 if an invariant was
// broken. The same seed makes the same events. With -soak there are no faults, but the memory,
// goroutines, descriptors and connections of each process must not grow.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/chaos"
	"github.com/hotparam/hotparam/internal/testenv"
)

func main() {
	c := chaos.Config{Log: os.Stdout}
	flag.Uint64Var(&c.Seed, "seed", uint64(time.Now().Unix()), "the `number` that all choices come from")
	flag.DurationVar(&c.Duration, "duration", 30*time.Minute, "how `long` events are made")
	flag.StringVar(&c.Scenario, "scenario", "all", "which events: `one` of "+strings.Join(chaos.Scenarios(), ", "))
	flag.StringVar(&c.Redis, "redis", "single", "`single`, sentinel or cluster")
	flag.StringVar(&c.Counts, "counts", "statsd", "`statsd` or kafka")
	only := flag.String("only", "", "these `kinds` of events in this order, separated by commas")
	soak := flag.Bool("soak", false, "no faults: does anything grow?")
	flag.Parse()
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, c, *soak)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, c chaos.Config, soak bool) (code int) {
	dir, err := os.MkdirTemp("", "hotparam-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory, which the system removes in the end
	if c.Programs, err = chaos.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var result interface {
		fmt.Stringer
		Broken() bool
	}
	err = testenv.Outside(ctx, dir, func(tb testing.TB) {
		if soak {
			result = chaos.Soak(tb, c)
		} else {
			result = chaos.Run(tb, c)
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if result == nil {
		return 2 // the cause is on stderr
	}
	fmt.Print(result)
	if result.Broken() {
		return 1
	}
	return 0
}
