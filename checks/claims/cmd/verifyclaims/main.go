// Verifyclaims checks the whole pipeline against the claims of docs/design/aggregator.md about
// its counts. It uses generated streams and real traces, over networks that lose, delay and
// double packets.
//
//	go run ./checks/claims/cmd/verifyclaims [-quick] [-only PART] [-seed N] [DATA]
//
// DATA is a folder with the traces; missing ones are skipped. Verifyclaims prints a line for each
// case and any violations below it. It exits with 1 if there are violations. A case with the same
// seed is the same each time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"github.com/hotparam/hotparam/checks/claims"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: verifyclaims [-quick] [-only PART] [-seed N] [-at-a-time N] [DATA]")
		flag.PrintDefaults()
	}
	var m claims.Matrix
	flag.BoolVar(&m.Quick, "quick", false, "few and small cases: a minute or two")
	flag.StringVar(&m.Only, "only", "", "only cases with this in their `name`")
	flag.Uint64Var(&m.Seed, "seed", 1, "the `number` that all random numbers come from")
	atATime := flag.Int("at-a-time", runtime.GOMAXPROCS(0), "how `many` cases run side by side")
	flag.Parse()
	if flag.NArg() > 1 || *atATime < 1 {
		flag.Usage()
		os.Exit(2)
	}
	m.Data = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := verify(ctx, m, *atATime)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifyclaims:", err)
		os.Exit(1)
	}
}

const format = "%-32s %6s %6s %-32s %11s %6s %6s %6s %6s %6s %7s %8s\n"

func verify(ctx context.Context, m claims.Matrix, atATime int) error {
	cases, skipped, err := m.Cases()
	if err != nil {
		return err
	}
	for _, s := range skipped {
		fmt.Fprintln(os.Stderr, s)
	}
	if len(cases) == 0 {
		return errors.New("no case to verify")
	}
	fmt.Printf(format, "stream", "memory", "lines", "network", "events", "true", "hot", "missed", "false", "bounds", "floor", "seconds")
	violations := int64(0)
	err = claims.RunAll(ctx, cases, atATime, func(c claims.Case, r claims.Result) {
		violations += r.Violations()
		print(c, r)
	})
	if err != nil {
		return err
	}
	if violations > 0 {
		return fmt.Errorf("%d violations (seed %d)", violations, m.Seed)
	}
	fmt.Printf("%d cases: every claim holds\n", len(cases))
	return nil
}

func print(c claims.Case, r claims.Result) {
	lines := "all"
	if c.Lines > 0 {
		lines = fmt.Sprint(c.Lines)
	}
	if r.Exact {
		lines += "="
	}
	n := func(claims ...claims.Claim) string {
		sum := int64(0)
		for _, c := range claims {
			sum += r.Broken[c]
		}
		return fmt.Sprint(sum)
	}
	fmt.Printf(format, c.Name, fmt.Sprintf("%d MB", c.Memory>>20), lines, c.Network, fmt.Sprint(r.Events), fmt.Sprint(r.Must), fmt.Sprint(r.Hot),
		n(claims.Missed, claims.Untold), n(claims.FalseHot), n(claims.LowAbove, claims.HighBelow, claims.Inexact), fmt.Sprint(r.FloorMost),
		fmt.Sprintf("%.2f", r.Took.Seconds()))
	if c.Measure {
		fmt.Printf("  the detectors hold %.1f MB in the end\n", float64(r.Memory)/(1<<20))
	}
	if r.Violations() > 0 {
		fmt.Println("  WRONG:", r.String())
	}
}
