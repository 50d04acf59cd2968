package adaptive

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam"
)

// Ramp lets a new instance have its share of the traffic little by little, since its
// caches are empty, its connections not made and its code not yet warm: from a part of
// it at the start to all of it after a while, in a straight line.
//
// There are two places for it. Before the instances, in a balancer or a client, by
// Weight, as Nginx's slow_start and Dubbo's warm-up do. In the instance itself, where
// nothing before it can be told: by Quota or Scale, applied each second or so until
// Factor is 1,
//
//	err := l.SetQuota(ramp.Quota(base, time.Since(started)))
//
// which turns away what is too much, so that it is for balancers that try another
// instance then. It is not what a quota's WarmUp does, which is about a limiter that
// was idle, again and again.
//
// # Before the first request
//
// What can be made ready is made ready before an instance tells that it is: run each
// handler once, with requests that change nothing, while the listener is not open yet
// or readiness is not told, and wait for them; then mark the start, and open.
//
//	for _, target := range []string{"/search?q=a", "/item?id=1"} {
//		r := httptest.NewRequest(http.MethodGet, target, nil)
//		handler.ServeHTTP(httptest.NewRecorder(), r) // the handler within the limits
//	}
//	started := time.Now()
//
// That loads what is loaded lazily, but no more than it touches, so a Ramp follows.
// Limits themselves come back as they were by a snapshot of limiter.Memory.
type Ramp struct {
	// Over is how long it takes, at least a millisecond.
	Over time.Duration
	// From is the part at the start, 0 to 1.
	From float64
}

// Validate reports what is wrong with r.
func (r Ramp) Validate() error {
	switch {
	case r.Over < time.Millisecond:
		return fmt.Errorf("adaptive: ramp: over %v: must be at least 1ms", r.Over)
	case !(r.From >= 0 && r.From <= 1):
		return fmt.Errorf("adaptive: ramp: from %v: must be 0 to 1", r.From)
	}
	return nil
}

// Factor is the part that an instance of that age takes, From to 1.
func (r Ramp) Factor(age time.Duration) float64 {
	if age >= r.Over {
		return 1
	}
	return r.From + (1-r.From)*(float64(max(age, 0))/float64(r.Over))
}

// Weight is an instance's weight beside others whose weight is full, at least 1: an
// only instance, or one of many that are all new, has to begin somewhere. With n
// instances of weight 100, one of which began t seconds of 100 ago, all weigh
// 100 × (n − 1) + t.
func (r Ramp) Weight(age time.Duration, full int64) int64 { return scaled(full, r.Factor(age)) }

// Scale is a concurrency, or the Max of a [Limiter], at that age, at least 1.
func (r Ramp) Scale(n int64, age time.Duration) int64 { return scaled(n, r.Factor(age)) }

// Quota is the quota at that age: rate and burst times the factor, one permit at least.
func (r Ramp) Quota(q hotparam.Quota, age time.Duration) hotparam.Quota {
	return scaledQuota(q, r.Factor(age))
}
