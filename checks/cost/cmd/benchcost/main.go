// Command benchcost compares what protects a database from one value that makes it scan a table:
// nothing, Envoy's adaptive concurrency, Sentinel's system rules, and hotparam. It writes a table
// into docs/COST.md, between its marks, and two pictures.
//
//	benchcost bin/hotparam docs
//	benchcost -only none,Envoy bin/hotparam -
//
// The first argument is the program whose aggregator is started. With - for the directory of the
// page the results go to standard output. It needs Linux, redis-server, PostgreSQL and Envoy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/checks/bench/chart"
	"github.com/hotparam/hotparam/checks/cost"
	"github.com/hotparam/hotparam/internal/testenv"
)

func main() {
	if cost.BeInstance() {
		return
	}
	logging.Disable() // go-redis logs each failed dial
	only := flag.String("only", "", "`names` of limiters with commas between, with - for the page (default all)")
	load := cost.Load{Share: 0.001}
	flag.Float64Var(&load.Rate, "rate", 2000, "requests per second")
	flag.DurationVar(&load.Before, "before", 30*time.Second, "how long all values are innocent")
	flag.DurationVar(&load.During, "during", 30*time.Second, "how long one of them makes the database scan")
	flag.DurationVar(&load.After, "after", 15*time.Second, "how long it no longer does")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: benchcost [flags] PROGRAM DIRECTORY")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, flag.Arg(0), flag.Arg(1), *only, load)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchcost:", err)
		os.Exit(1)
	}
}

// run runs the measurements. It changes the page only if all of them succeeded.
func run(ctx context.Context, program, dir, only string, load cost.Load) error {
	if dir != "-" && only != "" {
		return errors.New("-only is not for a page: give - in its place")
	}
	results, err := measure(ctx, program, only, load)
	if err != nil {
		return err
	}
	text := table(results)
	if dir == "-" {
		for _, r := range results {
			fmt.Printf("%s\n%s%v\n\n", r.Limiter, r.Table(), r.Judge())
		}
		fmt.Print(text)
		return nil
	}
	for name, drawn := range pictures(results) {
		if err := os.WriteFile(filepath.Join(dir, "images", name), []byte(drawn), 0o644); err != nil {
			return err
		}
	}
	return chart.WriteBetween(filepath.Join(dir, "COST.md"), "<!-- bench-cost -->\n", "<!-- /bench-cost -->\n", text)
}

// measure runs the scenario with one cause under each limiter, on one database.
func measure(ctx context.Context, program, only string, load cost.Load) (results []*cost.Result, err error) {
	files, err := os.MkdirTemp("", "benchcost-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(files)
	one := slices.IndexFunc(cost.Scenarios(), func(s cost.Scenario) bool { return s.Name == "one" })
	err = testenv.Outside(ctx, files, func(tb testing.TB) {
		db := cost.OpenDatabase(tb)
		for _, limiter := range []cost.Limiter{cost.None, cost.Envoy, cost.Sentinel, cost.Hotparam} {
			if only != "" && !slices.Contains(strings.Split(only, ","), string(limiter)) {
				continue
			}
			fmt.Fprintln(os.Stderr, "measuring", limiter)
			if err := testenv.Outside(ctx, files, func(tb testing.TB) {
				results = append(results, cost.Run(tb, db, program, limiter, cost.Scenarios()[one], load))
			}); err != nil {
				tb.Fatalf("%s: %v", limiter, err)
			}
		}
	})
	return results, err
}
