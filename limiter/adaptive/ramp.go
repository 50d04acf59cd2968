package adaptive

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Ramp gives a new instance its share of the traffic gradually, since its caches are empty, its
// connections not open and its code not warm. The fraction of the share grows linearly from
// From to 1.
//
// It is used in one of two places. A balancer or client before the instances uses Weight, as
// Nginx's slow_start and Dubbo's warm-up do. If nothing before the instance can be configured,
// the instance itself uses Quota or Scale, applied about once a second until Factor is 1:
//
//	err := l.SetQuota(ramp.Quota(base, time.Since(started)))
//
// This refuses the excess, so it suits balancers that then try another instance. A quota's
// WarmUp is different: it slows a limiter whenever it was idle.
//
// # Before the first request
//
// Prepare the instance before it reports that it is ready. Run each handler once, with requests
// that change nothing, before the listener opens or readiness is reported. Then mark the start
// and open.
//
//	for _, target := range []string{"/search?q=a", "/item?id=1"} {
//		r := httptest.NewRequest(http.MethodGet, target, nil)
//		handler.ServeHTTP(httptest.NewRecorder(), r) // the handler within the limits
//	}
//	started := time.Now()
//
// This loads lazily loaded data, but only as far as these requests use it, so use a Ramp
// afterwards. A snapshot of limiter.Memory restores the limits themselves.
type Ramp struct {
	// Over is the length of the ramp, at least a millisecond.
	Over time.Duration
	// From is the fraction at the start, from 0 to 1.
	From float64
}

// Validate returns an error if a field of r is out of range.
func (r Ramp) Validate() error {
	switch {
	case r.Over < time.Millisecond:
		return fmt.Errorf("adaptive: ramp: over %v: must be at least 1ms", r.Over)
	case !(r.From >= 0 && r.From <= 1):
		return fmt.Errorf("adaptive: ramp: from %v: must be 0 to 1", r.From)
	}
	return nil
}

// Factor returns the fraction of its share that an instance of that age takes, from From to 1.
func (r Ramp) Factor(age time.Duration) float64 {
	if age >= r.Over {
		return 1
	}
	return r.From + (1-r.From)*(float64(max(age, 0))/float64(r.Over))
}

// Weight returns an instance's weight, where full is the weight of the others. It is at least
// 1, since a single instance, or one of many that are all new, must get some traffic. With n
// instances of weight 100, one of which began t seconds of 100 ago, the total weight is 100 ×
// (n − 1) + t.
func (r Ramp) Weight(age time.Duration, full int64) int64 { return scaled(full, r.Factor(age)) }

// Scale returns a concurrency, or the Max of a [Limiter], for that age, at least 1.
func (r Ramp) Scale(n int64, age time.Duration) int64 { return scaled(n, r.Factor(age)) }

// Quota returns the quota for that age: rate and burst times the factor, at least one permit.
func (r Ramp) Quota(q rules.Quota, age time.Duration) rules.Quota {
	return scaledQuota(q, r.Factor(age))
}
