package claims

import (
	"math/rand/v2"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// StreamSize is the size of a generated stream.
type StreamSize struct {
	Rate      float64 // events per second, about
	Keys      int32   // distinct keys that can come more than once
	Instances int
	Length    time.Duration
}

func (s StreamSize) stream(seed uint64, components ...component) *generated {
	return &generated{
		length:     int64(s.Length),
		dense:      s.Keys,
		instances:  s.Instances,
		random:     rand.New(rand.NewPCG(seed, 1)),
		components: components,
	}
}

// Zipf returns a stream whose keys follow the Zipf law of an exponent, above or below 1.
func Zipf(s StreamSize, exponent float64) func(seed uint64) (EventStream, error) {
	return func(seed uint64) (EventStream, error) {
		pick := zipf(seed, s.Keys, exponent)
		return s.stream(seed, component{rate: s.Rate, key: func(*rand.Rand, int64, int64) int32 { return pick() }}), nil
	}
}

// FlatAndHot returns a stream with all keys evenly and, in addition, the first few at a rate
// each.
func FlatAndHot(s StreamSize, hot int32, each float64) func(seed uint64) (EventStream, error) {
	return func(seed uint64) (EventStream, error) {
		return s.stream(seed,
			component{rate: s.Rate, key: func(r *rand.Rand, _, _ int64) int32 { return r.Int32N(s.Keys) }},
			component{rate: each * float64(hot), key: func(_ *rand.Rand, _, i int64) int32 { return int32(i % int64(hot)) }},
		), nil
	}
}

// Distinct returns a stream in which each key comes once.
func Distinct(s StreamSize) func(seed uint64) (EventStream, error) {
	s.Keys = 1
	return func(seed uint64) (EventStream, error) { return s.stream(seed, component{rate: s.Rate}), nil }
}

// Moving returns a stream with all keys evenly and, in addition, another key at a rate each
// second.
func Moving(s StreamSize, rate float64) func(seed uint64) (EventStream, error) {
	return func(seed uint64) (EventStream, error) {
		return s.stream(seed,
			component{rate: s.Rate, key: func(r *rand.Rand, _, _ int64) int32 { return r.Int32N(s.Keys) }},
			component{rate: rate, key: func(_ *rand.Rand, instant, _ int64) int32 { return int32(instant/second*7919) % s.Keys }},
		), nil
	}
}

// Bursts returns a stream that follows the Zipf law and has, in addition, some keys that come in
// bursts. A burst takes a tenth of a second, and random silence of about a second follows.
func Bursts(s StreamSize, exponent float64, keys int32, size int64) func(seed uint64) (EventStream, error) {
	return func(seed uint64) (EventStream, error) {
		pick := zipf(seed, s.Keys-keys, exponent)
		return s.stream(seed,
			component{rate: s.Rate, key: func(*rand.Rand, int64, int64) int32 { return pick() }},
			component{rate: float64(keys) * float64(size) * 10, key: func(_ *rand.Rand, instant, i int64) int32 {
				key := i / size % int64(keys)
				if base.Mix64(seed+base.Mix64(uint64(instant/tenthSecond)<<16|uint64(key)))%12 > 0 {
					return none
				}
				return s.Keys - 1 - int32(key)
			}},
		), nil
	}
}

// Flood returns a stream of distinct keys, each once, and in addition a few hot keys at a rate
// each. All are spread over the instances evenly or, if skewed, by the Zipf law with exponent 1.
func Flood(s StreamSize, hot int32, each float64, skewed bool) func(seed uint64) (EventStream, error) {
	s.Keys = hot
	return func(seed uint64) (EventStream, error) {
		var instance func(*rand.Rand, int64) int
		if skewed {
			pick := zipf(seed, int32(s.Instances), 1)
			instance = func(*rand.Rand, int64) int { return int(pick()) }
		}
		return s.stream(seed,
			component{rate: s.Rate, instance: instance},
			component{rate: each * float64(hot), instance: instance, key: func(_ *rand.Rand, _, i int64) int32 { return int32(i % int64(hot)) }},
		), nil
	}
}

// Steady returns a stream with one key at a rate, evenly or at random times, among others that
// come occasionally.
func Steady(s StreamSize, rate float64, random bool) func(seed uint64) (EventStream, error) {
	return func(seed uint64) (EventStream, error) {
		return s.stream(seed,
			component{rate: rate, poisson: random, key: func(*rand.Rand, int64, int64) int32 { return 0 }},
			component{rate: s.Rate, key: func(r *rand.Rand, _, _ int64) int32 { return 1 + r.Int32N(s.Keys-1) }},
		), nil
	}
}

// Square returns a stream with one key at a rate in each first half of a period, among others.
func Square(s StreamSize, rate float64, period time.Duration) func(seed uint64) (EventStream, error) {
	return func(seed uint64) (EventStream, error) {
		return s.stream(seed,
			component{rate: rate, key: func(*rand.Rand, int64, int64) int32 { return 0 },
				active: func(instant int64) bool { return instant%int64(period) < int64(period)/2 }},
			component{rate: s.Rate, key: func(r *rand.Rand, _, _ int64) int32 { return 1 + r.Int32N(s.Keys-1) }},
		), nil
	}
}

// zipf returns a function that draws numbers below n by the Zipf law.
func zipf(seed uint64, n int32, exponent float64) func() int32 {
	z := yardstick.NewZipf(rand.New(rand.NewPCG(seed, 2)), exponent, int(n))
	return func() int32 { return int32(z.Draw() - 1) }
}
