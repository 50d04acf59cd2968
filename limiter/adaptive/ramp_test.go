package adaptive_test

import (
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter/adaptive"
	"github.com/hotparam/hotparam/rules"
)

func TestRamp(t *testing.T) {
	r := adaptive.Ramp{Over: 100 * time.Second, From: 0.2}
	for _, tc := range []struct {
		age  time.Duration
		want float64
	}{
		{math.MinInt64, 0.2}, {-1, 0.2}, {0, 0.2}, {25 * time.Second, 0.4}, {50 * time.Second, 0.6},
		{100 * time.Second, 1}, {math.MaxInt64, 1},
	} {
		if got := r.Factor(tc.age); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("Factor(%v) = %v, want %v", tc.age, got, tc.want)
		}
	}
	if got := r.Scale(10, 50*time.Second); got != 6 {
		t.Errorf("Scale(10) = %d, want 6", got)
	}
	base := rules.Quota{Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 20}
	for _, tc := range []struct {
		age  time.Duration
		want rules.Quota
	}{
		{0, rules.Quota{Algorithm: rules.TokenBucket, Rate: rules.Rate{N: 2, Per: time.Second}, Burst: 4}},
		{time.Hour, base},
	} {
		if got := r.Quota(base, tc.age); got != tc.want {
			t.Errorf("Quota at %v: %+v, want %+v", tc.age, got, tc.want)
		}
	}
	from0 := adaptive.Ramp{Over: time.Second}.Quota(base, 0)
	if err := from0.Validate(); err != nil || from0.Burst != 1 || from0.Rate.PerSecond() > 0.011 {
		t.Errorf("from nothing: %+v, %v", from0, err)
	}
}

// If one of n instances of weight 100 started t seconds of 100 ago, the total weight is 100 × (n −
// 1) + t.
func TestRampWeight(t *testing.T) {
	r := adaptive.Ramp{Over: 100 * time.Second}
	const n = 4
	for second := range int64(120) {
		total := r.Weight(time.Duration(second)*time.Second, 100)
		for range n - 1 {
			total += r.Weight(time.Hour, 100)
		}
		if want := 100*(n-1) + min(max(second, 1), 100); total != want {
			t.Errorf("after %d s: %d, want %d", second, total, want)
		}
	}
}

func TestRampValidate(t *testing.T) {
	for _, r := range []adaptive.Ramp{
		{}, {Over: -1}, {Over: 1}, {Over: time.Second, From: -0.1}, {Over: time.Second, From: 1.1}, {Over: time.Second, From: math.NaN()},
	} {
		if r.Validate() == nil {
			t.Errorf("%+v: no error", r)
		}
	}
	if err := (adaptive.Ramp{Over: time.Minute, From: 0.1}).Validate(); err != nil {
		t.Error(err)
	}
}
