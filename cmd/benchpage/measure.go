package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/bench"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/rules"
)

// figures are all figures of the page.
type figures struct {
	Request  bench.RequestResult
	Ingest   bench.IngestResult
	Detect   []detected
	Enforce  []enforced
	Pipeline []pipelined // statsd and kafka
}

// pipelined holds the runs of the whole chain over one transport.
type pipelined struct {
	Transport string
	Runs      []bench.PipelineResult
}

// median returns the median of a figure over the runs.
func (p *pipelined) median(figure func(bench.PipelineResult) float64) float64 {
	values := make([]float64, len(p.Runs))
	for i, r := range p.Runs {
		values[i] = figure(r)
	}
	slices.Sort(values)
	return yardstick.Percentile(values, 50)
}

func cpuSeconds(r bench.PipelineResult) float64 { return r.CPUSeconds }

// pipelineRatio returns the processor time of the chain over Kafka as a multiple of that over
// UDP. It is the median of the ratios of adjacent runs.
func (f *figures) pipelineRatio() float64 {
	var ratios []float64
	for i, udp := range f.Pipeline[0].Runs {
		ratios = append(ratios, f.Pipeline[1].Runs[i].CPUSeconds/udp.CPUSeconds)
	}
	slices.Sort(ratios)
	return yardstick.Percentile(ratios, 50)
}

// detected is the result for a stream at one size of memory.
type detected struct {
	Zipf   float64
	Memory int64 // MB
	bench.DetectResult
}

// enforced is the result for one pace of flushes with one spread over the instances.
type enforced struct {
	Urgent, Zipf bool
	bench.EnforceResult
}

func (e *enforced) name() string {
	pace, spread := "each 100 ms", "even"
	if e.Urgent {
		pace = "urgent"
	}
	if e.Zipf {
		spread = "Zipf 1"
	}
	return pace + ", " + spread
}

// plan is the extent of the measurements.
type plan struct {
	command            []string // command that starts a part
	request            bench.RequestConfig
	ingest             bench.IngestConfig
	exponents          []float64
	memories           []int64 // MB
	windows, events    int
	keys               int
	threshold          int64
	instances, samples int
	pipeline           bench.PipelineConfig
	rounds             int // runs of the pipeline
}

// full returns the plan for the repository's page, which takes about five minutes.
func full(command []string) plan {
	return plan{
		command:   command,
		exponents: []float64{0.8, 1, 1.1, 1.4},
		memories:  []int64{2, 4, 8, 16, 32, 64}, // with less memory the floor reaches the threshold and no key is shown
		windows:   3, events: 1_000_000, keys: 1_000_000, threshold: 500,
		instances: 20, samples: 200,
		rounds: 3,
	}
}

// measure runs all measurements one after the other.
func (p *plan) measure(ctx context.Context, say func(format string, args ...any)) (f figures, err error) {
	say("request")
	if f.Request, err = bench.Request(ctx, p.request); err != nil {
		return f, err
	}
	say("ingest")
	p.ingest.Command, p.ingest.VsMinimal = p.command, true
	if f.Ingest, err = bench.Ingest(ctx, p.ingest); err != nil {
		return f, err
	}
	for _, s := range p.exponents {
		for _, memory := range p.memories {
			say("detect: Zipf %g, %d MB", s, memory)
			r, err := bench.Detect(ctx, bench.DetectConfig{
				Rules: bench.LineRules(rules.Rate{N: p.threshold, Per: time.Second}), Memory: max(memory*1e6, 1<<20),
				Generate: &bench.Generate{Zipf: s, Keys: p.keys, Events: p.events, Windows: p.windows, Seed: 1},
			})
			if err != nil {
				return f, err
			}
			f.Detect = append(f.Detect, detected{Zipf: s, Memory: memory, DetectResult: r})
		}
	}
	for _, e := range []enforced{{Urgent: true}, {Urgent: true, Zipf: true}, {}, {Zipf: true}} {
		say("enforce: %s", e.name())
		e.EnforceResult, err = bench.Enforce(ctx, bench.EnforceConfig{
			Command: p.command, Instances: p.instances, Samples: p.samples, Zipf: e.Zipf, Slow: !e.Urgent,
		})
		if err != nil {
			return f, fmt.Errorf("%s: %w", e.name(), err)
		}
		f.Enforce = append(f.Enforce, e)
	}
	f.Pipeline = []pipelined{{Transport: bench.TransportStatsD}, {Transport: bench.TransportKafka}}
	p.pipeline.Command = p.command
	for round := range p.rounds {
		for i := range f.Pipeline {
			one := &f.Pipeline[i]
			say("pipeline: %s, %d of %d", one.Transport, round+1, p.rounds)
			p.pipeline.Transport = one.Transport
			r, err := bench.Pipeline(ctx, p.pipeline)
			if err != nil {
				return f, fmt.Errorf("pipeline over %s: %w", one.Transport, err)
			}
			one.Runs = append(one.Runs, r)
		}
	}
	return f, nil
}
