package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/bench/chart"
	"github.com/hotparam/hotparam/checks/cost"
)

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// table returns the figures of all limiters as Markdown.
func table(results []*cost.Result) string {
	var b strings.Builder
	l := results[0].Load
	fmt.Fprintf(&b, "Measured on %s, %d processors, all programs on one machine: `make bench-cost`. Of %.0f requests a second one in %.0f\nis for the value, from second %.0f to second %.0f.\n\n",
		time.Now().Format(time.DateOnly), runtime.NumCPU(), l.Rate, 1/l.Share, l.Before.Seconds(), (l.Before + l.During).Seconds())
	b.WriteString("| the database is protected by | others served | refused | failed | p50 | p99 | typical p99 before | typical p99 at the end |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range results {
		v := r.Judge()
		f := v.During
		all := float64(f.Served + f.Refused + f.Failed)
		fmt.Fprintf(&b, "| %s | %.1f%% | %.1f%% | %.1f%% | %.1f ms | %.0f ms | %.1f ms | %.1f ms |\n", names[r.Limiter],
			100*float64(f.Served)/all, 100*float64(f.Refused)/all, 100*float64(f.Failed)/all, millis(f.P50), millis(f.P99), v.Calm, v.Held)
	}
	for _, r := range results {
		if r.Limiter == cost.Hotparam {
			fmt.Fprintf(&b, "\nWith hotparam:\n\n- %s\n", strings.ReplaceAll(r.Judge().String(), "\n", "\n- "))
		}
	}
	return b.String()
}

var names = map[cost.Limiter]string{
	cost.None: "nothing", cost.Envoy: "Envoy's adaptive concurrency", cost.Sentinel: "Sentinel's system rules", cost.Hotparam: "hotparam",
}

// pictures returns the pictures by file name: the served requests and the p99 of the others, by
// second.
func pictures(results []*cost.Result) map[string]string {
	l := results[0].Load
	end := (l.Before + l.During + l.After).Seconds()
	x := chart.Axis{Name: "second", To: end, Ticks: chart.Ticks(end)}
	begins := []chart.Mark{{X: l.Before.Seconds(), Name: "the value begins"}, {X: (l.Before + l.During).Seconds(), Name: "and ends"}}
	var served, slowest []chart.Series
	for _, r := range results {
		s, p := chart.Series{Name: string(r.Limiter)}, chart.Series{Name: string(r.Limiter)}
		for i, f := range r.Seconds(0, l.Before+l.During+l.After) {
			s.X, s.Y = append(s.X, float64(i)), append(s.Y, float64(f.Served))
			if f.P99 > 0 { // otherwise all were refused
				p.X, p.Y = append(p.X, float64(i)), append(p.Y, max(1, millis(f.P99)))
			}
		}
		served, slowest = append(served, s), append(slowest, p)
	}
	most := 1.1 * l.Rate
	return map[string]string{
		"cost-served.svg": chart.Lines("Requests for other values that are served, by second", x,
			chart.Axis{To: most, Ticks: []float64{0, l.Rate / 4, l.Rate / 2, l.Rate * 3 / 4, l.Rate}}, served, begins...),
		"cost-p99.svg": chart.Lines("Their p99, by second", x,
			chart.Axis{From: 1, To: 5000, Ticks: []float64{1, 10, 100, 1000, 5000}, Log: true, Unit: " ms"}, slowest, begins...),
	}
}
