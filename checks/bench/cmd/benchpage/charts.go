package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/bench"
)

// charts returns the page's pictures by file name.
func charts(p plan, f figures) map[string]string {
	r, in := f.Request, f.Ingest
	costs := []row{{"floor", fmt.Sprintf("%.0f ns", r.FloorNS), r.FloorNS}}
	for _, name := range []string{bench.CaseCold, bench.CasePassed, bench.CaseRefused, "escaped", "six", "header", "cookie", "ctx"} {
		c := r.Case(name)
		costs = append(costs, row{strings.ReplaceAll(name, "_", ", "), fmt.Sprintf("%.0f ns · %.2f ×", c.NS, c.Floors), c.NS})
	}
	var chains []row
	for _, one := range f.Pipeline {
		v := one.median(cpuSeconds)
		chains = append(chains, row{transportName(one.Transport), fmt.Sprintf("%.2f s", v), v})
	}
	var ingested []row
	for _, l := range in.Loads {
		ingested = append(ingested, row{loadName(l.IngestLoad), fmt.Sprintf("%.2f ×", l.Ratio), l.Ratio})
	}
	return map[string]string{
		"bench-request.svg": bars("What a request pays", costs, goalCold*r.FloorNS, fmt.Sprintf("goal for cold: %g × floor", goalCold)),
		"bench-ingest.svg":  bars("Lines per CPU second, × those of a minimal reader", ingested, goalFlood, fmt.Sprintf("goal for a flood: %g ×", goalFlood)),
		"bench-detect-floor.svg": byMemory(p, f.Detect, "The floor, in % of the threshold, by memory", "%",
			func(d detected) float64 { return 100 * float64(d.Floor) / float64(p.threshold) }),
		"bench-detect-speed.svg": byMemory(p, f.Detect, "Million events per second on one processor, by memory", " M",
			func(d detected) float64 { return d.EventsPerSecond / 1e6 }),
		"bench-enforce.svg": cumulated(f.Enforce),
		"bench-pipeline.svg": bars("Processor time of the whole chain", chains,
			goalKafka*f.Pipeline[0].median(cpuSeconds), fmt.Sprintf("goal: %g × UDP", goalKafka)),
	}
}

// byMemory draws a line for each exponent.
func byMemory(p plan, all []detected, title, unit string, value func(detected) float64) string {
	var found []series
	highest := 0.0
	for _, s := range p.exponents {
		line := series{name: fmt.Sprintf("Zipf %g", s)}
		for _, d := range all {
			if d.Zipf == s {
				line.x, line.y = append(line.x, float64(d.Memory)), append(line.y, value(d))
				highest = max(highest, value(d))
			}
		}
		found = append(found, line)
	}
	memories := make([]float64, len(p.memories))
	for i, m := range p.memories {
		memories[i] = float64(m)
	}
	y := ticks(max(highest, 1e-3))
	return lines(title,
		axis{name: "memory (MB)", from: slices.Min(memories), to: max(slices.Max(memories), 2*slices.Min(memories)), ticks: memories, log: true},
		axis{from: 0, to: y[len(y)-1], ticks: y, unit: unit}, found)
}

// cumulated draws the share of the bursts that had met their limit by a time.
func cumulated(all []enforced) string {
	longest := goalSlow
	for _, e := range all {
		longest = max(longest, min(e.P99MS*1.1, 3*goalSlow))
	}
	x := ticks(longest)
	end := x[len(x)-1]
	var found []series
	for _, e := range all {
		line := series{name: e.name(), x: []float64{0}, y: []float64{0}}
		for i, d := range e.Last {
			ms := min(float64(d.Microseconds())/1000, end)
			n := float64(len(e.Last))
			line.x = append(line.x, ms, ms)
			line.y = append(line.y, 100*float64(i)/n, 100*float64(i+1)/n)
		}
		line.x, line.y = append(line.x, end), append(line.y, line.y[len(line.y)-1])
		found = append(found, line)
	}
	return lines("Bursts whose limit is in force on the last instance, by time since the crossing request",
		axis{name: "milliseconds", from: 0, to: end, ticks: x},
		axis{from: 0, to: 100, ticks: []float64{0, 25, 50, 75, 100}, unit: "%"}, found,
		mark{goalUrgent, fmt.Sprintf("%g ms", goalUrgent)}, mark{goalSlow, fmt.Sprintf("%g ms", goalSlow)})
}
