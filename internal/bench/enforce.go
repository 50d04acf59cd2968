package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// EnforceConfig says how the time to enforce is measured. Command is required; else
// the zero value is the default.
type EnforceConfig struct {
	// Command starts a part of this program: see [RunPart].
	Command []string
	// Instances is how many there are; 0 is 20.
	Instances int
	// Samples is how many bursts there are; 0 is 200.
	Samples int
	// Threshold is at how many requests within a second a key is hot; 0 is ten for
	// each instance. A burst has twice as many.
	Threshold int
	// Over is how long a burst takes; 0 is 50 ms.
	Over time.Duration
	// Zipf spreads a burst over the instances by Zipf's law with exponent 1, in a
	// new order for each; else they take turns.
	Zipf bool
	// Slow leaves urgent flushes off.
	Slow bool
	// Redis is the URL of a Redis to go over; empty: a redis-server of the PATH is
	// started.
	Redis string
	// Progress, if not nil, is called with how much of the run is over.
	Progress func(done, total int)
}

func (c *EnforceConfig) setDefaults() {
	if c.Instances == 0 {
		c.Instances = 20
	}
	if c.Samples == 0 {
		c.Samples = 200
	}
	if c.Threshold == 0 {
		c.Threshold = 10 * c.Instances
	}
	if c.Over == 0 {
		c.Over = 50 * time.Millisecond
	}
}

// ErrNoRedis says that there is no Redis to go over.
var ErrNoRedis = errors.New("there is no Redis to go over")

// EnforceResult is how long it took from the request that made the fleet's count of
// a key reach the threshold to its limit in force on the last instance.
type EnforceResult struct {
	N     int     `json:"n"`
	P50MS float64 `json:"p50_ms"`
	P99MS float64 `json:"p99_ms"`
	MaxMS float64 `json:"max_ms"`

	// Last are all those times, First those to the first request that was refused on
	// any instance; both are sorted.
	Last  []time.Duration `json:"-"`
	First []time.Duration `json:"-"`
	// Missed are samples in which some instance did not hold the key to its limit
	// within [EnforceLimit]; they are in Last with that time.
	Missed int `json:"-"`
}

// EnforceLimit is how long a burst is waited for.
const EnforceLimit = 2 * time.Second

// Enforce measures with real processes: instances, each a guard with its collector
// and its watcher, and an aggregator, over sockets and a Redis. Each burst is for a
// key of its own, begins at any time between two flushes, and its limit is one
// request per second on each instance.
func Enforce(ctx context.Context, c EnforceConfig) (result EnforceResult, err error) {
	c.setDefaults()
	f, err := newFleet(ctx, c)
	defer func() {
		err = interrupted(ctx, errors.Join(err, f.stop()))
	}()
	if err != nil {
		return result, err
	}
	if err := f.warmUp(ctx); err != nil {
		return result, err
	}
	for i := range c.Samples {
		s, err := f.sample(ctx)
		if err != nil {
			return result, err
		}
		result.add(s)
		if c.Progress != nil {
			c.Progress(i+1, c.Samples)
		}
	}
	result.sum()
	return result, nil
}

func (r *EnforceResult) add(s enforced) {
	r.Last = append(r.Last, s.last)
	if s.refused {
		r.First = append(r.First, s.first)
	}
	if s.missed {
		r.Missed++
	}
}

func (r *EnforceResult) sum() {
	slices.Sort(r.Last)
	slices.Sort(r.First)
	ms := func(d time.Duration) float64 { return math.Round(float64(d)/1e4) / 100 }
	r.N = len(r.Last)
	r.P50MS, r.P99MS, r.MaxMS = ms(Percentile(r.Last, 50)), ms(Percentile(r.Last, 99)), ms(Percentile(r.Last, 100))
}

// warmFor is how long bursts are not counted: connections are made, scripts loaded,
// and polls have told the instances how many they are.
const warmFor = 2 * time.Second

func (f *fleet) warmUp(ctx context.Context) error {
	until := time.Now().Add(warmFor)
	for time.Now().Before(until) {
		if _, err := f.sample(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enforced is what one burst came to.
type enforced struct {
	last    time.Duration // from the crossing to the limit in force on the last instance
	first   time.Duration // to the first request refused on any
	refused bool          // there was one
	missed  bool
}

// sample sends one burst.
func (f *fleet) sample(ctx context.Context) (enforced, error) {
	f.samples++
	start := f.begin()
	bursts := make([]burst, len(f.instances))
	for i := range bursts {
		bursts[i] = burst{Query: fmt.Sprintf("q=%d", f.samples), Until: start + int64(f.config.Over+EnforceLimit)}
	}
	requests := 2 * f.config.Threshold
	pick := f.picker()
	for i := range requests {
		b := &bursts[pick(i)]
		b.At = append(b.At, start+int64(f.config.Over)*int64(i)/int64(requests))
	}
	for i, instance := range f.instances {
		if err := instance.send(bursts[i]); err != nil {
			return enforced{}, err
		}
	}
	outcomes := make([]outcome, len(f.instances))
	for i, instance := range f.instances {
		if err := instance.receive(&outcomes[i]); err != nil {
			return enforced{}, err
		}
	}
	return judge(outcomes, f.config.Threshold), ctx.Err()
}

// begin is when the next burst begins: soon, but at any time between two flushes,
// since keys are found right behind one.
func (f *fleet) begin() int64 {
	const orders = 3 * time.Millisecond // on their way to the instances
	return monotonic() + int64(orders) + f.rand.Int64N(int64(base.FlushInterval))
}

// picker returns a function that chooses the instance for request i of a burst.
func (f *fleet) picker() func(i int) int {
	n := len(f.instances)
	if !f.config.Zipf {
		return func(i int) int { return i % n }
	}
	zipf, order := NewZipf(f.rand, 1, n), f.rand.Perm(n)
	return func(int) int { return order[zipf.Draw()-1] }
}

// judge finds the request that reached the threshold, and what came of it.
func judge(outcomes []outcome, threshold int) enforced {
	var requests []int64
	for _, o := range outcomes {
		requests = append(requests, o.Requests...)
	}
	slices.Sort(requests)
	crossing := requests[threshold-1]
	var e enforced
	for _, o := range outcomes {
		after := EnforceLimit
		if at := o.inForce(); at != 0 {
			after = time.Duration(at - crossing)
		} else {
			e.missed = true
		}
		e.last = max(e.last, after)
		if o.Refused != 0 {
			if first := time.Duration(o.Refused - crossing); !e.refused || first < e.first {
				e.refused, e.first = true, first
			}
		}
	}
	return e
}
