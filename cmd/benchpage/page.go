package main

import (
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/bench"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// Goals of the design for the figures.
const (
	goalCold   = 1.6  // × the floor
	goalHot    = 0.9  // × the floor, added to cold
	goalAnswer = 8.0  // × the floor
	goalAllocs = 3.0  // allocations of an answer
	goalFlood  = 1.4  // × the minimal reader's lines per CPU second
	goalBrisk  = 2.5  // the same ratio, at 50,000 packets a second
	goalUrgent = 25.0 // ms, p99
	goalSlow   = 120.0
	goalKafka  = 1.5 // × the processor time over UDP
)

// missed returns a mark for a figure that does not reach its goal.
func missed(ok bool) string {
	if ok {
		return ""
	}
	return " ◄"
}

// page returns the text of docs/BENCH.md.
func page(m yardstick.Machine, p plan, f figures) string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w(`# Measured

What `+"`hotparam bench`"+` measures, as pictures. This page is made by

    make bench-page

on whatever machine that runs on. **Only ratios within a section mean anything**: they
were measured in one run, in turns. ◄ marks what does not reach its goal.
What the peers do for the same tasks is in [benchmarks](../benchmarks/README.md), and what a
request through a gateway pays in [GATEWAYS.md](GATEWAYS.md#what-a-door-costs).

Measured on %s.
`, m)
	requestPart(w, f.Request)
	ingestPart(w, f.Ingest)
	detectPart(w, p, f.Detect)
	enforcePart(w, p, f.Enforce)
	pipelinePart(w, f)
	return b.String()
}

type writer func(format string, args ...any)

func requestPart(w writer, r bench.RequestResult) {
	w(`## Request

What the check of a request takes of one processor's time: two parameters, 100,000
values by Zipf's law. The floor is the least that counting it can cost: two parameters
sorted by hand, a hash, a load from a map that never changes, one atomic add. What the
collector does on the side, each 100 ms, is divided by the requests that are not hot,
which come as fast as they can.

![What a request pays](images/bench-request.svg)

| | ns | × floor | allocations | goal |
| --- | ---: | ---: | ---: | --- |
| floor | %.1f | 1.00 | | |`, r.FloorNS)
	for _, c := range r.Cases {
		w("| %s | %.1f | %.2f | %g | %s |", c.What, c.NS, c.Floors, c.Allocs, requestGoal(r, c))
	}
	w(`| on the side: flush, send | %.1f | %.2f | | |

The requests that are not hot have other keys each time, the hot ones the same: a hot
key is in the processor's cache. × floor is the median of the ratios to a floor
measured beside each. What a refusal allocates is its answer's headers. The form
is read once more by its handler, which here calls ParseForm: the row behind it is what that
takes without hotparam. The rest is the guard's, which holds the body for the handler.
`, r.FlushNS, r.FlushNS/r.FloorNS)
}

// requestGoal returns the design's goal for a case, or "".
func requestGoal(r bench.RequestResult, c bench.RequestCost) string {
	switch c.Name {
	case bench.CaseCold:
		return fmt.Sprintf("at most %g × the floor, 0 allocations%s", goalCold, missed(c.Floors <= goalCold && c.Allocs == 0))
	case bench.CasePassed, bench.CaseRefused:
		extra := c.Floors - r.Case(bench.CaseCold).Floors
		return fmt.Sprintf("at most %g floors more than not hot, 0 allocations%s", goalHot, missed(extra <= goalHot && c.Allocs == 0))
	case bench.CaseAnswered:
		return fmt.Sprintf("at most %g × the floor, %g allocations%s", goalAnswer, goalAllocs, missed(c.Floors <= goalAnswer && c.Allocs <= goalAllocs))
	}
	return ""
}

func ingestPart(w writer, r bench.IngestResult) {
	w(`## Ingest

Lines such as ` + "`shop.hot_param.b=2&q=1:1|c`" + ` over UDP on loopback, 20 a packet, 100,000
keys by Zipf's law, sent by one process, as fast as it can or at random times. Merged are
packets of one length that the sender passes to the system as one message (UDP_SEGMENT):
the aggregator takes them as one (UDP_GRO), and the minimal reader one by one. On a network
a receiver's system merges packets that arrive one after the other, if they are of one
sender and one length. StatsD clients' packets, ours too, are of many lengths and seldom
merged: the other rows are theirs. CPU is the user and system time of the
process that receives. The minimal reader does one read at a time, the least parsing, and
counts in a Go map for each socket: no window, no bounds, memory without end.

![Lines per CPU second](images/bench-ingest.svg)

| packets/s, readers | lines/s | lines per CPU second | of the minimal reader | ratio | lost | goal |
| --- | ---: | ---: | ---: | ---: | ---: | --- |`)
	for _, l := range r.Loads {
		goal := ""
		if ratio := goalOf(l.IngestLoad); ratio > 0 {
			goal = fmt.Sprintf("%g%s", ratio, missed(l.Ratio >= ratio))
		}
		w("| %s | %.2f M | %.2f M | %.2f M | **%.2f** | %.1f%% | %s |", loadName(l.IngestLoad), l.LinesPerSecond/1e6, l.LinesPerCPUSecond/1e6,
			l.Minimal.LinesPerCPUSecond/1e6, l.Ratio, 100*float64(l.Lost)/float64(max(1, l.Sent)), goal)
	}
	w(`
A flood saturates the reader: the socket drops the rest, and the gaps in the senders'
sequences show it. Below saturation a reader that is woken for each packet pays more for
that than for its lines.
`)
}

// goalOf returns the goal for the ratio under a load, or 0.
func goalOf(l bench.IngestLoad) float64 {
	switch {
	case l.Readers == 1 && l.Rate == 0:
		return goalFlood
	case l.Readers == 1 && l.Rate == 50_000:
		return goalBrisk
	}
	return 0
}

func loadName(l bench.IngestLoad) string {
	rate, readers := "flood", "1 reader"
	if l.Rate > 0 {
		rate = grouped(l.Rate)
	}
	if l.Merged {
		rate += ", merged"
	}
	if l.Readers > 1 {
		readers = fmt.Sprintf("%d readers", l.Readers)
	}
	return rate + ", " + readers
}

// grouped returns n with a comma between groups of three digits.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

func detectPart(w writer, p plan, all []detected) {
	w(`## Detect

%d windows of %s events each, over %s keys whose frequencies follow Zipf's law.
A key is hot at %d events within a second. The result is compared with an exact count of
every key. The floor is the most that could be hidden of any key: 0 while memory lasts for
an exact count. *Missed* are keys that truly reached threshold + floor and were not found;
*false* are keys that were hot and never truly so. Both must be 0 at any size.
Events are per second of processor time, from line to window.

![The floor by memory](images/bench-detect-floor.svg)

![Events per second by memory](images/bench-detect-speed.svg)

| exponent | memory | held | precision | recall | missed | false | floor | events/s |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |`, p.windows, grouped(p.events), grouped(p.keys), p.threshold)
	for _, d := range all {
		w("| %g | %d MB | %.1f MB | %s | %s | %d%s | %d%s | %d | %.2f M |", d.Zipf, d.Memory, float64(d.MemoryBytes)/1e6,
			share(d.Precision), share(d.Recall), d.MissedAboveFloor, missed(d.MissedAboveFloor == 0), d.FalseHot, missed(d.FalseHot == 0),
			d.Floor, d.EventsPerSecond/1e6)
	}
	w("")
}

func share(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", *v)
}

func enforcePart(w writer, p plan, all []enforced) {
	w(`## Enforce

From the request that makes the count of all %d instances reach the threshold (%d within a
second) to the limit in force on the last of them: real processes, real Redis, %d bursts of
twice the threshold within 50 ms, each for a new key, the limit one request per second.
Requests are spread over the instances evenly, or by Zipf's law with exponent 1.

![Time to enforce](images/bench-enforce.svg)

| flushes, spread | p50 | p99 | max | first refusal, p50 | p99 | goal for p99 |
| --- | ---: | ---: | ---: | ---: | ---: | --- |`, p.instances, 10*p.instances, p.samples)
	for _, e := range all {
		goal := goalSlow
		if e.Urgent {
			goal = goalUrgent
		}
		first := func(p float64) float64 { return float64(yardstick.Percentile(e.First, p).Microseconds()) / 1000 }
		w("| %s | %.1f ms | %.1f ms | %.1f ms | %.1f ms | %.1f ms | %g ms%s |",
			e.name(), e.P50MS, e.P99MS, e.MaxMS, first(50), first(99), goal, missed(e.P99MS <= goal))
	}
}

func pipelinePart(w writer, f figures) {
	events := f.Pipeline[0].Runs[0]
	w(`
## Pipeline

The whole chain at the same load over UDP and over Kafka (embedded, in a process of its
own; 12 partitions): about %.0f events per second for %.0f s, counted in the collectors of
instances, through the transport, the aggregator and Redis, back to the watchers. Processor
time is that of instances and aggregator, without broker and Redis. Lag is from an event's
count to its window; flushes come each 100 ms. Medians of %d runs each, in turns.

![Processor time of the chain](images/bench-pipeline.svg)

| over | processor time | instances | aggregator | lag, p99 | lost |
| --- | ---: | ---: | ---: | ---: | ---: |`, events.EventsPerSecond, events.Seconds, len(f.Pipeline[0].Runs))
	for _, one := range f.Pipeline {
		var lost int64
		for _, r := range one.Runs {
			lost += r.Lost
		}
		w("| %s | %.2f s | %.2f s | %.2f s | %.1f ms | %d%s |", transportName(one.Transport), one.median(cpuSeconds),
			one.median(func(r bench.PipelineResult) float64 { return r.Instances }),
			one.median(func(r bench.PipelineResult) float64 { return r.Aggregator }),
			one.median(func(r bench.PipelineResult) float64 { return r.LagMS }), lost, missed(lost == 0))
	}
	ratio := f.pipelineRatio()
	w(`
Over Kafka it takes **%.2f** times the processor time of UDP, goal at most %g%s.`, ratio, goalKafka, missed(ratio <= goalKafka))
}

func transportName(transport string) string {
	return map[string]string{bench.TransportStatsD: "UDP (StatsD lines)", bench.TransportKafka: "Kafka"}[transport]
}
