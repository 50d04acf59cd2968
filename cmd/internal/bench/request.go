package bench

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// RequestConfig configures [Request]. The zero value is the default.
type RequestConfig struct {
	// Rounds is the number of rounds in which the cases are measured, in turns. Zero means 20.
	// Cases without a goal are measured in every second round.
	Rounds int
	// Slice is the length of one measurement. Zero means 100 ms, which end with a flush.
	Slice time.Duration
	// Progress, if not nil, is called with the number of finished measurements and the total.
	Progress func(done, total int)

	values int // values of a parameter; zero means requestValues
}

// RequestResult is the cost of a request: medians over the rounds, in time of a single processor,
// so that other programs on the machine are not included. The request's own goroutine pays
// FloorNS, ColdNS and HotNS. Another goroutine pays FlushNS.
type RequestResult struct {
	FloorNS    float64 `json:"floor_ns"` // the least cost of counting a request: see requestLoad.floor
	ColdNS     float64 `json:"cold_ns"`  // the whole check of a request whose key is not hot
	ColdAllocs float64 `json:"cold_allocs"`
	HotNS      float64 `json:"hot_ns"` // the same if the key is hot, and over its limit
	HotAllocs  float64 `json:"hot_allocs"`
	// FlushNS is the time per cold request of the collector's flushes, every 100 ms, including
	// the socket that they send to, at the highest possible rate of requests. Their allocations
	// are in ColdAllocs.
	FlushNS float64 `json:"flush_ns"`
	// Cases are all measured cases except the floor, in the order of the tables.
	Cases []RequestCost `json:"cases"`
}

// RequestCost is the cost of a request in one case.
type RequestCost struct {
	Name   string  `json:"case"`
	What   string  `json:"what"`
	NS     float64 `json:"ns"`
	Floors float64 `json:"floors"` // the median of NS divided by the floor measured next to it
	Allocs float64 `json:"allocs"`
}

// Case returns the cost of the case with this name, or a zero one.
func (r *RequestResult) Case(name string) RequestCost {
	for _, c := range r.Cases {
		if c.Name == name {
			return c
		}
	}
	return RequestCost{}
}

// Request measures the cost of a request on one processor. It sets GOMAXPROCS to 1 until it
// returns.
func Request(ctx context.Context, c RequestConfig) (RequestResult, error) {
	c.Rounds, c.Slice, c.values = cmp.Or(c.Rounds, 20), cmp.Or(c.Slice, base.FlushInterval), cmp.Or(c.values, requestValues)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	load, err := newRequestLoad(ctx, c.values)
	if err != nil {
		return RequestResult{}, err
	}
	measured, err := load.measure(ctx, c)
	return measured, errors.Join(err, load.Close())
}

// measure measures the cases in turns, and before each one the floor, for a fourth of the time.
// On a busy machine the next moment may be twice as slow, so each case is compared with a floor
// measured next to it.
func (l *requestLoad) measure(ctx context.Context, c RequestConfig) (RequestResult, error) {
	type passSeries struct{ ns, floors, flush, allocs []float64 }
	all := make([]passSeries, len(l.cases))
	var floors []float64
	done, total := 0, (c.Rounds+1)/2*len(all)+c.Rounds/2*len(goalCases)
	for round := range c.Rounds {
		for i, one := range l.cases {
			if round%2 == 1 && !slices.Contains(goalCases, one.name) {
				continue
			}
			floor, err := l.perCall(ctx, l.floor, nil, c.Slice/4)
			if err != nil {
				return RequestResult{}, err
			}
			took, err := l.perCall(ctx, one.step, one.counting, c.Slice)
			if err != nil {
				return RequestResult{}, err
			}
			floors = append(floors, floor.ns)
			s := &all[i]
			s.ns, s.floors = append(s.ns, took.ns), append(s.floors, took.ns/floor.ns)
			s.flush, s.allocs = append(s.flush, took.flush), append(s.allocs, took.allocs)
			if done++; c.Progress != nil {
				c.Progress(done, total)
			}
		}
	}
	r := RequestResult{FloorNS: tenth(yardstick.Median(floors))}
	for i, one := range l.cases {
		s := &all[i]
		r.Cases = append(r.Cases, RequestCost{
			Name: one.name, What: one.what,
			NS: tenth(yardstick.Median(s.ns)), Floors: math.Round(yardstick.Median(s.floors)*100) / 100, Allocs: tenth(yardstick.Median(s.allocs)),
		})
		if one.name == CaseCold {
			r.FlushNS = tenth(yardstick.Median(s.flush))
		}
	}
	cold, hot := r.Case(CaseCold), r.Case(CaseRefused)
	r.ColdNS, r.ColdAllocs, r.HotNS, r.HotAllocs = cold.NS, cold.Allocs, hot.NS, hot.Allocs
	return r, l.check()
}

// callCost is the cost of a call: nanoseconds of processor time, its own and that of its share of
// the flushes, and the allocations of both.
type callCost struct{ ns, flush, allocs float64 }

// perCall returns the cost of a call of step, which it calls for length. It flushes the counts
// every 100 ms, unless counting is nil.
func (l *requestLoad) perCall(ctx context.Context, step func(i int), counting *collector.Collector, length time.Duration) (callCost, error) {
	const batch = 1 << 9 // calls between two readings of the clock
	var before, after runtime.MemStats
	if counting != nil {
		runtime.GC()
	}
	runtime.ReadMemStats(&before)
	calls := 0
	var stepping, flushes time.Duration
	for left := length; left > 0; left -= base.FlushInterval {
		if err := ctx.Err(); err != nil {
			return callCost{}, err
		}
		from, err := cpuTime()
		if err != nil {
			return callCost{}, err
		}
		start := time.Now()
		for time.Since(start) < min(left, base.FlushInterval) {
			for range batch {
				step(l.next)
				l.next++
				calls++
			}
		}
		counted, err := cpuTime()
		if err != nil {
			return callCost{}, err
		}
		if counting != nil {
			counting.Flush(ctx, start)
		}
		flushed, err := cpuTime()
		if err != nil {
			return callCost{}, err
		}
		stepping, flushes = stepping+counted-from, flushes+flushed-counted
	}
	runtime.ReadMemStats(&after)
	per := 1 / float64(calls)
	return callCost{
		ns:     float64(stepping.Nanoseconds()) * per,
		flush:  float64(flushes.Nanoseconds()) * per,
		allocs: float64(after.Mallocs-before.Mallocs) * per,
	}, nil
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }
