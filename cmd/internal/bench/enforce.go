package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// EnforceConfig configures [Enforce]. Command is required. The zero value of any other field is
// its default.
type EnforceConfig struct {
	// Command is the command that starts a part of this program: see [RunPart].
	Command []string
	// Instances is the number of instances. Zero means 20.
	Instances int
	// Samples is the number of bursts. Zero means 200.
	Samples int
	// Threshold is the number of requests within a second that makes a key hot. Zero means ten
	// for each instance. A burst has twice as many.
	Threshold int
	// Over is the length of a burst. Zero means 50 ms.
	Over time.Duration
	// Zipf spreads a burst over the instances by Zipf's law with exponent 1, in a new order for
	// each burst. Otherwise the instances take turns.
	Zipf bool
	// Slow disables urgent flushes.
	Slow bool
	// Redis is the URL of a Redis to use. If it is empty, a redis-server from the PATH is
	// started.
	Redis string
	// Progress, if not nil, is called with the number of measured bursts and the total.
	Progress func(done, total int)
}

func (c *EnforceConfig) setDefaults() {
	c.Instances = cmp.Or(c.Instances, 20)
	c.Samples = cmp.Or(c.Samples, 200)
	c.Threshold = cmp.Or(c.Threshold, 10*c.Instances)
	c.Over = cmp.Or(c.Over, 50*time.Millisecond)
}

// ErrNoRedis means that no Redis is available.
var ErrNoRedis = errors.New("there is no Redis to go over")

// EnforceResult has the times from the request that made the fleet's count of a key reach the
// threshold to its limit in force on the last instance.
type EnforceResult struct {
	N     int     `json:"n"`
	P50MS float64 `json:"p50_ms"`
	P99MS float64 `json:"p99_ms"`
	MaxMS float64 `json:"max_ms"`

	// Last holds all these times. First holds the times to the first request that was refused on
	// any instance. Both are sorted.
	Last  []time.Duration `json:"-"`
	First []time.Duration `json:"-"`
	// Missed is the number of samples in which some instance did not enforce the limit within
	// [EnforceLimit]. They are in Last with that time.
	Missed int `json:"-"`
}

// EnforceLimit bounds the wait for a burst's limit.
const EnforceLimit = 2 * time.Second

// Enforce measures with real processes over sockets and a Redis: an aggregator, and instances
// that each have a guard with its collector and its watcher. Each burst is for a new key and
// begins at a random time between two flushes. Its limit is one request per second on each
// instance.
func Enforce(ctx context.Context, c EnforceConfig) (result EnforceResult, err error) {
	c.setDefaults()
	f, err := newEnforceFleet(ctx, c)
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
	r.P50MS, r.P99MS, r.MaxMS = ms(yardstick.Percentile(r.Last, 50)), ms(yardstick.Percentile(r.Last, 99)), ms(yardstick.Percentile(r.Last, 100))
}

// enforceFleet holds the running parts: a Redis, an aggregator, instances.
type enforceFleet struct {
	harness
	config  EnforceConfig
	rand    *mathrand.Rand
	samples int
}

// newEnforceFleet starts all parts and returns when all instances follow the hot set. The caller must
// stop the returned fleet even if there is an error.
func newEnforceFleet(ctx context.Context, c EnforceConfig) (*enforceFleet, error) {
	f := &enforceFleet{harness: newHarness(c.Command, c.Redis), config: c, rand: yardstick.NewRand(1)}
	if err := f.useRedis(ctx); err != nil {
		return f, err
	}
	common := partConfig{Redis: f.redis, Namespace: f.namespace, Threshold: c.Threshold, Slow: c.Slow}
	aggregator, err := f.start(ctx, "aggregator", common)
	if err != nil {
		return f, err
	}
	if err := aggregator.receive(&common.StatsD); err != nil {
		return f, err
	}
	return f, f.startInstances(ctx, "instance", c.Instances, func(i int) any {
		return instanceConfig{partConfig: common, Number: i, Of: c.Instances}
	})
}

// warmFor is the time in which bursts are not counted. Until then connections are made, scripts
// are loaded, and polls have reported the number of instances to each of them.
const warmFor = 2 * time.Second

func (f *enforceFleet) warmUp(ctx context.Context) error {
	until := time.Now().Add(warmFor)
	for time.Now().Before(until) {
		if _, err := f.sample(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enforced is the result of one burst.
type enforced struct {
	last    time.Duration // time from reaching the threshold to the limit in force on the last instance
	first   time.Duration // time to the first refused request on any instance
	refused bool          // whether there was one
	missed  bool
}

// sample sends one burst.
func (f *enforceFleet) sample(ctx context.Context) (enforced, error) {
	f.samples++
	start := f.nextBurst()
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
	outcomes := make([]burstOutcome, len(f.instances))
	for i, instance := range f.instances {
		if err := instance.receive(&outcomes[i]); err != nil {
			return enforced{}, err
		}
	}
	return judge(outcomes, f.config.Threshold), ctx.Err()
}

// nextBurst returns the start of the next burst: soon, but at a random time between two flushes,
// since keys are detected right after a flush.
func (f *enforceFleet) nextBurst() int64 {
	const orders = 3 * time.Millisecond // time for the orders to reach the instances
	return monotonic() + int64(orders) + f.rand.Int64N(int64(base.FlushInterval))
}

// picker returns a function that chooses the instance for request i of a burst.
func (f *enforceFleet) picker() func(i int) int {
	n := len(f.instances)
	if !f.config.Zipf {
		return func(i int) int { return i % n }
	}
	zipf, order := yardstick.NewZipf(f.rand, 1, n), f.rand.Perm(n)
	return func(int) int { return order[zipf.Draw()-1] }
}

// judge finds the request that reached the threshold, and the times from it to the limit.
func judge(outcomes []burstOutcome, threshold int) enforced {
	var requests []int64
	for _, o := range outcomes {
		requests = append(requests, o.Requests...)
	}
	slices.Sort(requests)
	crossing := requests[threshold-1]
	var e enforced
	for _, o := range outcomes {
		after := EnforceLimit
		if when := o.inForce(); when != 0 {
			after = time.Duration(when - crossing)
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
