package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// IngestConfig says how taking in lines is measured. Command is required; else the
// zero value is the default.
type IngestConfig struct {
	// Command starts a part of this program: see [RunPart].
	Command []string
	// Rounds is how often it is measured; 0 is 5.
	Rounds int
	// Slice is how long it is measured each time; 0 is 2 s.
	Slice time.Duration
	// VsMinimal measures a minimal reader, too, in turns.
	VsMinimal bool
	// Progress, if not nil, is called with how much of the run is over.
	Progress func(done, total int)
}

// IngestResult is what the aggregator takes in of the lines that one sender sends
// as fast as it can: medians over the rounds. CPU is the user and system time of the
// whole process that receives, and of it alone.
type IngestResult struct {
	LinesPerSecond    float64 `json:"lines_per_second"`
	LinesPerCPUSecond float64 `json:"lines_per_cpu_second"`
	Lost              int64   `json:"lost"` // lines sent less those counted, of all rounds

	*Minimal

	Sent int64 `json:"-"` // lines of all rounds
}

// Minimal is the same of a minimal reader: one read at a time, the least parsing
// that these lines need, a Go map, no window and no bounds.
type Minimal struct {
	LinesPerSecond    float64 `json:"minimal_lines_per_second"`
	LinesPerCPUSecond float64 `json:"minimal_lines_per_cpu_second"`
	Ratio             float64 `json:"ratio"` // of the lines per CPU second: median of the rounds' ratios, the aggregator's over this one's
}

// Ingest measures from the socket to the window.
func Ingest(ctx context.Context, c IngestConfig) (IngestResult, error) {
	if c.Rounds == 0 {
		c.Rounds = 5
	}
	if c.Slice == 0 {
		c.Slice = 2 * time.Second
	}
	kinds := []string{kindAggregator}
	if c.VsMinimal {
		kinds = append(kinds, kindMinimal)
	}
	var result IngestResult
	rounds := make([][]ingestRound, len(kinds))
	for i := range c.Rounds {
		for k, kind := range kinds {
			r, err := c.round(ctx, kind)
			if err != nil {
				return IngestResult{}, interrupted(ctx, err)
			}
			rounds[k] = append(rounds[k], r)
			if kind == kindAggregator {
				result.Sent += r.sent
				result.Lost += r.sent - r.counted
			}
			if c.Progress != nil {
				c.Progress(i*len(kinds)+k+1, c.Rounds*len(kinds))
			}
		}
	}
	result.LinesPerSecond = math.Round(medianOf(rounds[0], ingestRound.perSecond))
	result.LinesPerCPUSecond = math.Round(medianOf(rounds[0], ingestRound.perCPU))
	if c.VsMinimal {
		ratios := make([]float64, c.Rounds)
		for i := range ratios {
			ratios[i] = rounds[0][i].perCPU() / rounds[1][i].perCPU()
		}
		result.Minimal = &Minimal{
			LinesPerSecond:    math.Round(medianOf(rounds[1], ingestRound.perSecond)),
			LinesPerCPUSecond: math.Round(medianOf(rounds[1], ingestRound.perCPU)),
			Ratio:             math.Round(Median(ratios)*1000) / 1000,
		}
	}
	return result, nil
}

func medianOf(rounds []ingestRound, f func(ingestRound) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = f(r)
	}
	return Median(values)
}

// ingestRound is one measurement.
type ingestRound struct {
	sent, counted int64 // lines, from the first to the last
	from, to      reading
}

// reading is what a receiver has done by an instant.
type reading struct {
	Lines int64
	CPU   time.Duration
	At    int64 // monotonic
}

func (r ingestRound) lines() float64     { return float64(r.to.Lines - r.from.Lines) }
func (r ingestRound) perSecond() float64 { return r.lines() / (float64(r.to.At-r.from.At) / 1e9) }
func (r ingestRound) perCPU() float64    { return r.lines() / (r.to.CPU - r.from.CPU).Seconds() }

// settle is how long lines flow before they are measured: all keys have been seen.
const settle = 300 * time.Millisecond

// round starts a receiver and a sender, measures while lines flow, and ends both.
func (c *IngestConfig) round(ctx context.Context, kind string) (r ingestRound, err error) {
	receiver, err := startPart(ctx, c.Command, "receiver", receiverConfig{Kind: kind})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, receiver.stop()) }()
	var addr string
	if err := receiver.receive(&addr); err != nil {
		return r, err
	}
	sender, err := startPart(ctx, c.Command, "sender", senderConfig{Addr: addr})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, sender.stop()) }()
	var sending bool
	if err := sender.receive(&sending); err != nil {
		return r, err
	}
	if err := sleep(ctx, settle); err != nil {
		return r, err
	}
	if r.from, err = receiver.read(); err != nil {
		return r, err
	}
	if err := sleep(ctx, c.Slice); err != nil {
		return r, err
	}
	if r.to, err = receiver.read(); err != nil {
		return r, err
	}
	if err := sender.last(&r.sent); err != nil {
		return r, err
	}
	var end reading
	if err := receiver.last(&end); err != nil {
		return r, err
	}
	r.counted = end.Lines
	if r.lines() <= 0 {
		return r, fmt.Errorf("bench: the %s counted nothing in %v, while %d lines were sent", kind, c.Slice, r.sent)
	}
	return r, nil
}

// read asks a receiver for a reading.
func (p *part) read() (r reading, err error) {
	if err := p.send("read"); err != nil {
		return r, err
	}
	return r, p.receive(&r)
}

// interrupted is the end of ctx where that is what brought err about: parts that
// end then say much else.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
