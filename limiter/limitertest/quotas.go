package limitertest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// evenRates are rates whose permit costs a whole number of microseconds, or of nanoseconds for a
// backend with that resolution; oddRates are others.
var (
	evenRates = []rules.Rate{
		perSecond(1), perSecond(10), perSecond(200), perSecond(4000), perSecond(rules.MaxRate),
		{N: 1, Per: 2 * sec}, {N: 60, Per: time.Minute}, {N: 10, Per: 500 * ms}, {N: 5, Per: time.Hour}, {N: 1, Per: day},
	}
	oddRates = []rules.Rate{
		perSecond(3), perSecond(7), perSecond(1999), perSecond(9_999_999),
		{N: 7, Per: time.Minute}, {N: 11, Per: 333 * ms}, {N: 1_000_003, Per: time.Hour},
	}
	windowPers = []time.Duration{60 * ms, sec, 6 * sec, time.Minute, time.Hour, 6 * day}
	zones      = []string{"", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"}
)

const startsShort = "token_bucket that starts short"

// variant draws quotas of one kind.
type variant struct {
	name string
	draw func(t *rapid.T) rules.Quota
}

// plain holds the variants of each algorithm, without a penalty.
var plain = []variant{
	{"token_bucket", drawBucket(rules.TokenBucket, evenRates)},
	{startsShort, func(t *rapid.T) rules.Quota {
		q := drawBucket(rules.TokenBucket, evenRates)(t)
		q.Missing = rapid.Int64Range(1, q.Burst).Draw(t, "missing")
		return q
	}},
	{"gcra", drawBucket(rules.GCRA, evenRates)},
	{"leaky_bucket, policing", drawBucket(rules.LeakyBucket, evenRates)},
	{"leaky_bucket, shaping", func(t *rapid.T) rules.Quota {
		q := drawBucket(rules.LeakyBucket, evenRates)(t)
		q.Shape = true
		return q
	}},
	{"fixed_window", drawWindow(rules.FixedWindow, false)},
	{"fixed_window, count_denied", drawWindow(rules.FixedWindow, true)},
	{"fixed_window, calendar", func(t *rapid.T) rules.Quota {
		c := rapid.SampledFrom([]rules.Calendar{
			rules.CalendarSecond, rules.CalendarMinute, rules.CalendarHour, rules.CalendarDay,
			rules.CalendarWeek, rules.CalendarMonth, rules.CalendarYear,
		}).Draw(t, "calendar")
		return rules.Quota{
			Algorithm: rules.FixedWindow,
			Rate:      rules.Rate{N: rapid.Int64Range(1, 12).Draw(t, "limit"), Per: rules.CalendarPeriods[c]},
			Calendar:  c,
			Zone:      rapid.SampledFrom(zones).Draw(t, "zone"),
		}
	}},
	{"sliding_log", drawWindow(rules.SlidingLog, false)},
	{"sliding_log, count_denied", drawWindow(rules.SlidingLog, true)},
	{"sliding_blocks", drawBlocks(false)},
	{"sliding_blocks, count_denied", drawBlocks(true)},
}

// variants are all variants that the model supports, except warm-up.
var variants = append(slices.Clone(plain), []variant{
	{"unlimited", func(t *rapid.T) rules.Quota {
		return rules.Quota{Algorithm: rapid.SampledFrom(rules.Algorithms).Draw(t, "algorithm"), Burst: rules.Unlimited}
	}},
	{"penalty", func(t *rapid.T) rules.Quota {
		q := drawAny(t)
		q.Penalty = rapid.SampledFrom([]time.Duration{ms, sec, time.Minute}).Draw(t, "penalty")
		return q
	}},
}...)

// drawAny draws a quota of any algorithm, with no penalty.
func drawAny(t *rapid.T) rules.Quota {
	return rapid.SampledFrom(anyVariant).Draw(t, "variant").draw(t)
}

// anyVariant leaves out buckets that start short. A key that the backend drops and makes again
// would start short again, which the model does not expect.
var anyVariant = slices.DeleteFunc(slices.Clone(plain), func(v variant) bool { return v.name == startsShort })

func drawBucket(a rules.Algorithm, rates []rules.Rate) func(*rapid.T) rules.Quota {
	return func(t *rapid.T) rules.Quota {
		return rules.Quota{
			Algorithm: a,
			Rate:      rapid.SampledFrom(rates).Draw(t, "rate"),
			Burst:     rapid.Int64Range(1, 12).Draw(t, "burst"),
		}
	}
}

func drawWindow(a rules.Algorithm, countDenied bool) func(*rapid.T) rules.Quota {
	return func(t *rapid.T) rules.Quota {
		n := rapid.Int64Range(1, 12).Draw(t, "limit")
		return rules.Quota{
			Algorithm:   a,
			Rate:        rules.Rate{N: n, Per: rapid.SampledFrom(windowPers).Draw(t, "per")},
			CountDenied: countDenied,
		}
	}
}

func drawBlocks(countDenied bool) func(*rapid.T) rules.Quota {
	return func(t *rapid.T) rules.Quota {
		q := drawWindow(rules.SlidingBlocks, countDenied)(t)
		q.Blocks = rapid.SampledFrom([]int{1, 2, 3, 6, 10, 60}).Draw(t, "blocks")
		return q
	}
}

// drawSupported draws a quota for which the model is exact, and returns it with the kinds of asks
// that the backend supports for it. ok is false if the backend supports none.
func (v variant) drawSupported(t *rapid.T, c *Config) (_ rules.Quota, kinds []limiter.OpKind, ok bool) {
	q := v.draw(t).WithDefaults()
	if !exact(&q, c.tick()) {
		return q, nil, false
	}
	known := c.kinds(&q)
	return q, known, len(known) > 0
}

// kinds returns the kinds of asks that the backend supports for a quota.
func (c *Config) kinds(q *rules.Quota) (known []limiter.OpKind) {
	for k := limiter.Take; k <= limiter.Forget; k++ {
		if c.supports(q, k) {
			known = append(known, k)
		}
	}
	return known
}
