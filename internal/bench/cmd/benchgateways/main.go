package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/bench/gateways"
)

func main() {
	only := flag.String("only", "", "")
	turns := flag.Int("turns", 0, "")
	rate := flag.Int("rate", 0, "")
	flag.Parse()
	start := time.Now()
	c := gateways.Config{Program: flag.Arg(0), Turns: *turns, Rate: *rate, Say: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%4.0fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}}
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	r, err := gateways.Run(context.Background(), c)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(r)
	for _, g := range r.Gateways {
		fmt.Println(g.Name, g.Version, g.Skipped)
		for i := range g.Rows {
			row := g.Rows[i]
			fmt.Printf("%-50s %-8s", row.Name, row.Kind)
			for _, t := range row.Turns {
				fmt.Printf(" | %4d %5d  late %4d  cpu %4d %4d %4d", t.P50.Microseconds(), t.P99.Microseconds(), t.LateP99.Microseconds(), t.Gateway.Microseconds(), t.Service.Microseconds(), t.Stores.Microseconds())
			}
			fmt.Println()
		}
	}
}
