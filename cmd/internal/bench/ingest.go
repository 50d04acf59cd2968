package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// IngestConfig configures [Ingest]. Command is required.
type IngestConfig struct {
	// Command is the command that starts a part of this program: see [RunPart].
	Command []string
	// Loads are the loads to measure, in turns. None means the default of [IngestLoads].
	Loads []IngestLoad
	// Rounds is the number of measurements of each load. Zero means 5.
	Rounds int
	// Slice is the length of one measurement. Zero means 1 s.
	Slice time.Duration
	// VsMinimal also measures a minimal reader, in turns.
	VsMinimal bool
	// Progress, if not nil, is called with the number of finished measurements and the total.
	Progress func(done, total int)
}

// IngestLoad describes how packets are sent, and how many sockets share the port.
type IngestLoad struct {
	// Rate is the number of packets sent per second, at random times like those of a fleet. Zero
	// means as fast as possible.
	Rate    int `json:"packets_per_second"`
	Readers int `json:"readers"`
	// Merged passes up to 32 packets of one length to the system as one message (UDP_SEGMENT).
	// The system delivers them as one to a socket that accepts that (UDP_GRO), and splits them
	// for others. Otherwise each packet is sent separately.
	Merged bool `json:"merged"`
}

// IngestLoads returns the loads for each number of readers at each rate. The default rates are a
// flood and two rates below saturation. The default numbers of readers are one and, where sockets
// can share a port, two. A flood is measured with separate packets, and also with merged ones on
// systems that support them.
func IngestLoads(rates, readers []int) (all []IngestLoad) {
	if len(rates) == 0 {
		rates = []int{0, 50_000, 5_000}
	}
	if len(readers) == 0 {
		if readers = []int{1}; canSharePort {
			readers = []int{1, 2}
		}
	}
	for _, n := range readers {
		for _, rate := range rates {
			if rate == 0 && canSegment {
				all = append(all, IngestLoad{Rate: rate, Readers: n, Merged: true})
			}
			all = append(all, IngestLoad{Rate: rate, Readers: n})
		}
	}
	return all
}

// IngestResult has the figures for each load.
type IngestResult struct {
	Loads []IngestFigures `json:"loads"`
}

// IngestFigures are the figures of the aggregator under one load, as medians over the rounds. CPU
// is the user and system time of the whole receiving process, and of that process alone.
type IngestFigures struct {
	IngestLoad
	LinesPerSecond    float64 `json:"lines_per_second"`
	LinesPerCPUSecond float64 `json:"lines_per_cpu_second"`
	Lost              int64   `json:"lost"` // lines sent minus lines counted, over all rounds

	*Minimal

	Sent int64 `json:"-"` // lines sent, over all rounds
}

// Minimal has the same figures for a minimal reader: one read at a time, the least parsing that
// these lines need, a Go map for each socket, no window and no bounds.
type Minimal struct {
	LinesPerSecond    float64 `json:"minimal_lines_per_second"`
	LinesPerCPUSecond float64 `json:"minimal_lines_per_cpu_second"`
	// Ratio is the aggregator's lines per CPU second divided by the minimal reader's: the median
	// of the ratios of the rounds.
	Ratio float64 `json:"ratio"`
}

// Ingest measures the aggregator from the socket to the window.
func Ingest(ctx context.Context, c IngestConfig) (IngestResult, error) {
	c.Rounds, c.Slice = cmp.Or(c.Rounds, 5), cmp.Or(c.Slice, time.Second)
	if len(c.Loads) == 0 {
		c.Loads = IngestLoads(nil, nil)
	}
	kinds := []string{kindAggregator}
	if c.VsMinimal {
		kinds = append(kinds, kindMinimal)
	}
	rounds := make([][2][]ingestRound, len(c.Loads)) // by load and kind
	done := 0
	for range c.Rounds {
		for i, load := range c.Loads {
			for k, kind := range kinds {
				r, err := c.round(ctx, kind, load)
				if err != nil {
					return IngestResult{}, interrupted(ctx, err)
				}
				rounds[i][k] = append(rounds[i][k], r)
				if done++; c.Progress != nil {
					c.Progress(done, c.Rounds*len(c.Loads)*len(kinds))
				}
			}
		}
	}
	var result IngestResult
	for i, load := range c.Loads {
		result.Loads = append(result.Loads, figuresOf(load, rounds[i][0], rounds[i][1]))
	}
	return result, nil
}

// figuresOf returns the medians of the rounds of one load.
func figuresOf(load IngestLoad, rounds, minimal []ingestRound) IngestFigures {
	f := IngestFigures{
		IngestLoad:        load,
		LinesPerSecond:    math.Round(medianOf(rounds, ingestRound.perSecond)),
		LinesPerCPUSecond: math.Round(medianOf(rounds, ingestRound.perCPU)),
	}
	for _, r := range rounds {
		f.Sent += r.sent
		f.Lost += r.sent - r.counted
	}
	if len(minimal) == 0 {
		return f
	}
	ratios := make([]float64, len(rounds))
	for i := range ratios {
		ratios[i] = rounds[i].perCPU() / minimal[i].perCPU()
	}
	f.Minimal = &Minimal{
		LinesPerSecond:    math.Round(medianOf(minimal, ingestRound.perSecond)),
		LinesPerCPUSecond: math.Round(medianOf(minimal, ingestRound.perCPU)),
		Ratio:             math.Round(yardstick.Median(ratios)*1000) / 1000,
	}
	return f
}

func medianOf(rounds []ingestRound, f func(ingestRound) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = f(r)
	}
	return yardstick.Median(values)
}

// ingestRound is one measurement.
type ingestRound struct {
	sent, counted int64 // lines, over the whole run
	from, to      receiverProgress
}

// receiverProgress is the progress of a receiver at a point in time.
type receiverProgress struct {
	Lines int64
	CPU   time.Duration
	At    int64 // monotonic
}

func (r ingestRound) lines() float64     { return float64(r.to.Lines - r.from.Lines) }
func (r ingestRound) perSecond() float64 { return r.lines() / (float64(r.to.At-r.from.At) / 1e9) }
func (r ingestRound) perCPU() float64    { return r.lines() / (r.to.CPU - r.from.CPU).Seconds() }

// settle is the time before a measurement in which lines are sent, so that all keys have been
// seen.
const settle = 300 * time.Millisecond

// round starts a receiver and a sender, measures while lines are received, and ends both.
func (c *IngestConfig) round(ctx context.Context, kind string, load IngestLoad) (r ingestRound, err error) {
	receiver, err := startPart(ctx, c.Command, "receiver", receiverConfig{Kind: kind, Readers: load.Readers})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, receiver.stop()) }()
	var addr string
	if err := receiver.receive(&addr); err != nil {
		return r, err
	}
	sender, err := startPart(ctx, c.Command, "sender", senderConfig{Addr: addr, Rate: load.Rate, Merged: load.Merged})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, sender.stop()) }()
	var sending bool
	if err := sender.receive(&sending); err != nil {
		return r, err
	}
	if err := base.Sleep(ctx, settle); err != nil {
		return r, err
	}
	if r.from, err = receiver.read(); err != nil {
		return r, err
	}
	if err := base.Sleep(ctx, c.Slice); err != nil {
		return r, err
	}
	if r.to, err = receiver.read(); err != nil {
		return r, err
	}
	if err := sender.last(&r.sent); err != nil {
		return r, err
	}
	var end receiverProgress
	if err := receiver.last(&end); err != nil {
		return r, err
	}
	r.counted = end.Lines
	if r.lines() <= 0 {
		return r, fmt.Errorf("bench: the %s counted nothing in %v, while %d lines were sent", kind, c.Slice, r.sent)
	}
	return r, nil
}

// read requests a reading from a receiver.
func (p *partProcess) read() (r receiverProgress, err error) {
	if err := p.send("read"); err != nil {
		return r, err
	}
	return r, p.receive(&r)
}

// interrupted returns the error of ctx if it has ended, and err otherwise. Parts that end then
// return various other errors.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
