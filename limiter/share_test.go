package limiter_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func TestShare(t *testing.T) {
	rate := func(n int64, per time.Duration) rules.Rate { return rules.Rate{N: n, Per: per} }
	for name, c := range map[string]struct {
		quota     rules.Quota
		instances int
		rate      rules.Rate
		burst     int64
		below     bool
	}{
		"alone":                   {rules.Quota{Rate: rate(10, time.Second), Burst: 5}, 1, rate(10, time.Second), 5, false},
		"nobody counts as one":    {rules.Quota{Rate: rate(10, time.Second), Burst: 5}, 0, rate(10, time.Second), 5, false},
		"unlimited":               {rules.Quota{Burst: rules.Unlimited}, 7, rules.Rate{}, rules.Unlimited, false},
		"a bucket":                {rules.Quota{Rate: rate(10, time.Second), Burst: 9}, 4, rate(10, 4*time.Second), 2, false},
		"less than one token":     {rules.Quota{Rate: rate(1, time.Second), Burst: 3}, 4, rate(1, 4*time.Second), 1, true},
		"the burst is the rate's": {rules.Quota{Rate: rate(100, time.Second)}, 20, rate(100, 20*time.Second), 5, false},
		"a window":                {rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(10, time.Second)}, 4, rate(2, time.Second), 2, false},
		"less than one in each":   {rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(3, time.Second)}, 7, rate(1, 3*time.Second), 1, true},
		"a natural period": {
			rules.Quota{Algorithm: rules.FixedWindow, Calendar: rules.CalendarHour, Rate: rate(3, time.Hour)}, 7, rate(1, time.Hour), 1, true,
		},
		"beyond all clocks": {rules.Quota{Rate: rate(1, math.MaxInt64/8), Burst: 1}, 1000, rate(1, math.MaxInt64/8), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			part, below := limiter.Share(&c.quota, c.instances)
			if part.Rate != c.rate || part.Burst != c.burst || below != c.below {
				t.Errorf("rate %v, burst %d, below %v; want %v, %d, %v", part.Rate, part.Burst, below, c.rate, c.burst, c.below)
			}
		})
	}
}

// A share of a quota that may be shared is valid. The shares add up to no more than the whole,
// unless a share is below one permit.
func TestShareIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rules.Quota{
			Algorithm: rapid.SampledFrom(rules.Algorithms).Draw(t, "algorithm"),
			Rate:      rules.Rate{N: rapid.Int64Range(1, 1e6).Draw(t, "n"), Per: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "per"))},
			Burst:     rapid.Int64Range(0, 1e9).Draw(t, "burst"),
		}.WithDefaults()
		if q.Validate() != nil {
			t.Skip("not a quota")
		}
		n := rapid.IntRange(1, 10_000).Draw(t, "instances")
		part, below := limiter.Share(&q, n)
		if err := part.Validate(); err != nil {
			t.Fatalf("a part of %+v over %d instances: %+v: %v", q, n, part, err)
		}
		exact := int64(q.Rate.Per) <= 1<<61/int64(n)
		if whole, all := q.Rate.PerSecond(), part.Rate.PerSecond()*float64(n); exact && !below && all > whole*(1+1e-9) {
			t.Fatalf("%d parts of %v per second are %v", n, whole, all)
		}
		if all := part.Burst * int64(n); all > q.Burst && !below {
			t.Fatalf("%d parts of a burst of %d are %d", n, q.Burst, all)
		}
	})
}
