// Command fleet measures how instances hold one limit together. It compares hotparam's scope: fleet
// and scope: exact with other limiters, with the same Redis and load. It writes a table into a page,
// between its marks, and a picture.
//
//	fleet -page ../docs/LIMITS.md -picture ../docs/images/fleet.svg
//	fleet                                # prints the table
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/checks/bench/chart"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/yardstick"
)

func main() {
	page := flag.String("page", "", "`file` that gets the table; without it the table is printed")
	picture := flag.String("picture", "", "`file` that gets the picture")
	long := flag.Duration("for", 10*time.Second, "length of a measurement")
	flag.Parse()
	logging.Disable() // go-redis logs each failed dial
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *page, *picture, *long); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, page, picture string, long time.Duration) error {
	dir, err := os.MkdirTemp("", "hotparam-fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	failed := testenv.Outside(ctx, dir, func(tb testing.TB) {
		err = measure(ctx, testenv.Redis(tb).URL(), page, picture, long)
	})
	return cmp.Or(err, failed)
}

// measure measures all policies over a Redis.
func measure(ctx context.Context, url, page, picture string, long time.Duration) error {
	var table strings.Builder
	fmt.Fprintf(&table, "Measured on %s with Redis on the same machine, %d processors, %s each: `make bench-fleet`.\n\n",
		time.Now().Format(time.DateOnly), runtime.NumCPU(), long)
	table.WriteString("| demand | | use | beyond the bound | round trips/s | p50 | p99 |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	var calls []chart.Row
	for _, zipf := range []bool{false, true} {
		got, err := yardstick.Fleet(ctx, yardstick.FleetConfig{
			Connect: func() (redis.UniversalClient, error) { return hotkeys.NewClient(url) }, Namespace: fmt.Sprintf("fleet-%v", zipf), Zipf: zipf, For: long, Policies: append(yardstick.FleetPolicies(), peers()...),
			Progress: func(done, total int) { log.Printf("%d of %d measurements, Zipf %v", done, total, zipf) },
		})
		if err != nil {
			return err
		}
		for _, r := range got.Rows {
			spread := "even"
			if zipf {
				spread = "Zipf"
			}
			fmt.Fprintf(&table, "| %g ×, %s | %s | %.1f%% | %.0f | %.0f | %s | %s |\n",
				r.Demand, spread, r.Policy, 100*r.Use, r.Overshoot, r.Calls, yardstick.Micros(r.P50US), yardstick.Micros(r.P99US))
			if r.Errors > 0 {
				log.Printf("%s: %d errors of %d requests", r.Policy, r.Errors, r.Asked)
			}
			if r.Demand == 3 && !zipf {
				calls = append(calls, chart.Row{
					Name: r.Policy, Length: r.Calls,
					Value: fmt.Sprintf("%.0f/s, %.0f beyond", r.Calls, r.Overshoot),
				})
			}
		}
	}
	if picture != "" {
		drawn := chart.Bars("Round trips to Redis per second, and permits beyond burst + rate × time, at three times the limit", calls, 0, "")
		if err := os.WriteFile(picture, []byte(drawn), 0o644); err != nil {
			return err
		}
	}
	if page == "" {
		_, err := fmt.Print(table.String())
		return err
	}
	return chart.WriteBetween(page, "<!-- bench-fleet -->\n", "<!-- /bench-fleet -->\n", table.String())
}
