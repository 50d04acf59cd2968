// Command benchgateways measures what the guard's doors add to a request through real gateways,
// and writes the results into a page, between its marks.
//
//	benchgateways bin/hotparam docs/GATEWAYS.md
//	benchgateways -only nginx,Caddy -turns 2 bin/hotparam -
//
// The first argument is the program whose guard is started. With - for the page the results go to
// standard output. All gateways take about four minutes. It needs Linux, redis-server and nginx.
// Other gateways that are not installed are skipped, and the page says so.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/checks/bench/gateways"
)

func main() {
	logging.Disable() // go-redis logs each failed dial
	var c gateways.Config
	flag.IntVar(&c.Rate, "rate", 500, "requests per second")
	flag.IntVar(&c.Turns, "turns", 5, "how often each row is measured")
	flag.DurationVar(&c.Slice, "slice", time.Second, "how long a row is measured in a turn")
	only := flag.String("only", "", "`names` of gateways with commas between, with - for the page (default all)")
	asJSON := flag.Bool("json", false, "with - for the page: print each turn of each row as JSON")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: benchgateways [flags] PROGRAM PAGE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	c.Program = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c, flag.Arg(1), *asJSON)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchgateways:", err)
		os.Exit(1)
	}
}

// run runs the measurements. It changes the page only if all of them succeeded.
func run(ctx context.Context, c gateways.Config, page string, asJSON bool) error {
	if page != "-" && (len(c.Only) > 0 || asJSON) {
		return errors.New("-only and -json are not for a page: give - in its place")
	}
	start := time.Now()
	c.Say = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%4.0fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	r, err := gateways.Run(ctx, c)
	switch {
	case err != nil:
		return err
	case asJSON:
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", " ")
		return encoder.Encode(r)
	case page == "-":
		fmt.Print(r.Markdown())
		return nil
	}
	return gateways.WritePage(page, r)
}
