package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/checks/bench/chart"
	"github.com/hotparam/hotparam/cmd/internal/bench"
)

// charts returns the page's pictures by file name.
func charts(p plan, f figures) map[string]string {
	r, in := f.Request, f.Ingest
	costs := []chart.Row{{Name: "floor", Value: fmt.Sprintf("%.0f ns", r.FloorNS), Length: r.FloorNS}}
	for _, name := range []string{bench.CaseCold, bench.CasePassed, bench.CaseRefused, "escaped", "six", "header", "cookie", "ctx"} {
		c := r.Case(name)
		costs = append(costs, chart.Row{
			Name: strings.ReplaceAll(name, "_", ", "), Value: fmt.Sprintf("%.0f ns · %.2f ×", c.NS, c.Floors), Length: c.NS,
		})
	}
	var chains []chart.Row
	for _, one := range f.Pipeline {
		v := one.median(cpuSeconds)
		chains = append(chains, chart.Row{Name: transportName(one.Transport), Value: fmt.Sprintf("%.2f s", v), Length: v})
	}
	var ingested []chart.Row
	for _, l := range in.Loads {
		ingested = append(ingested, chart.Row{Name: loadName(l.IngestLoad), Value: fmt.Sprintf("%.2f ×", l.Ratio), Length: l.Ratio})
	}
	return map[string]string{
		"bench-request.svg": chart.Bars("What a request pays", costs, goalCold*r.FloorNS, fmt.Sprintf("goal for cold: %g × floor", goalCold)),
		"bench-ingest.svg":  chart.Bars("Lines per CPU second, × those of a minimal reader", ingested, goalFlood, fmt.Sprintf("goal for a flood: %g ×", goalFlood)),
		"bench-detect-floor.svg": byMemory(p, f.Detect, "The floor, in % of the threshold, by memory", "%",
			func(d detected) float64 { return 100 * float64(d.Floor) / float64(p.threshold) }),
		"bench-detect-speed.svg": byMemory(p, f.Detect, "Million events per second on one processor, by memory", " M",
			func(d detected) float64 { return d.EventsPerSecond / 1e6 }),
		"bench-enforce.svg": cumulated(f.Enforce),
		"bench-pipeline.svg": chart.Bars("Processor time of the whole chain", chains,
			goalKafka*f.Pipeline[0].median(cpuSeconds), fmt.Sprintf("goal: %g × UDP", goalKafka)),
	}
}

// byMemory draws a line for each exponent.
func byMemory(p plan, all []detected, title, unit string, value func(detected) float64) string {
	var found []chart.Series
	highest := 0.0
	for _, s := range p.exponents {
		line := chart.Series{Name: fmt.Sprintf("Zipf %g", s)}
		for _, d := range all {
			if d.Zipf == s {
				line.X, line.Y = append(line.X, float64(d.Memory)), append(line.Y, value(d))
				highest = max(highest, value(d))
			}
		}
		found = append(found, line)
	}
	memories := make([]float64, len(p.memories))
	for i, m := range p.memories {
		memories[i] = float64(m)
	}
	y := chart.Ticks(max(highest, 1e-3))
	return chart.Lines(title,
		chart.Axis{Name: "memory (MB)", From: slices.Min(memories), To: max(slices.Max(memories), 2*slices.Min(memories)), Ticks: memories, Log: true},
		chart.Axis{From: 0, To: y[len(y)-1], Ticks: y, Unit: unit}, found)
}

// cumulated draws the share of the bursts that had met their limit by a time.
func cumulated(all []enforced) string {
	longest := goalSlow
	for _, e := range all {
		longest = max(longest, min(e.P99MS*1.1, 3*goalSlow))
	}
	x := chart.Ticks(longest)
	end := x[len(x)-1]
	var found []chart.Series
	for _, e := range all {
		line := chart.Series{Name: e.name(), X: []float64{0}, Y: []float64{0}}
		for i, d := range e.Last {
			ms := min(float64(d.Microseconds())/1000, end)
			n := float64(len(e.Last))
			line.X = append(line.X, ms, ms)
			line.Y = append(line.Y, 100*float64(i)/n, 100*float64(i+1)/n)
		}
		line.X, line.Y = append(line.X, end), append(line.Y, line.Y[len(line.Y)-1])
		found = append(found, line)
	}
	return chart.Lines("Bursts whose limit is in force on the last instance, by time since the crossing request",
		chart.Axis{Name: "milliseconds", From: 0, To: end, Ticks: x},
		chart.Axis{From: 0, To: 100, Ticks: []float64{0, 25, 50, 75, 100}, Unit: "%"}, found,
		chart.Mark{X: goalUrgent, Name: fmt.Sprintf("%g ms", goalUrgent)}, chart.Mark{X: goalSlow, Name: fmt.Sprintf("%g ms", goalSlow)})
}
