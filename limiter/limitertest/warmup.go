package limitertest

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// warmUpTolerance returns the error that is allowed for an instant of a bucket that warms up,
// since it is computed in floating point.
func warmUpTolerance(tick time.Duration) time.Duration { return max(us, 3*tick) }

func drawWarmUp(t *rapid.T) rules.Quota {
	q := drawBucket(rules.TokenBucket, []rules.Rate{perSecond(1), perSecond(3), perSecond(10), perSecond(1000), {N: 7, Per: time.Minute}})(t)
	q.Algorithm = rapid.SampledFrom([]rules.Algorithm{rules.TokenBucket, rules.GCRA}).Draw(t, "algorithm")
	q.WarmUp = rapid.SampledFrom([]time.Duration{100 * ms, sec, 10 * sec, time.Minute}).Draw(t, "warm-up")
	q.ColdFactor = rapid.SampledFrom([]float64{0, 1.5, 2, 3, 10}).Draw(t, "cold factor")
	return q
}

// testWarmUp compares buckets that warm up with the model, as far as floating point allows. If
// the two decide differently because of it, the schedule ends.
func testWarmUp(t *testing.T, c *Config) {
	near := warmUpTolerance(c.tick())
	close := func(a, b time.Duration) bool { return max(a-b, b-a) <= near }
	check(t, c, func(rt *rapid.T) {
		q := drawWarmUp(rt).WithDefaults()
		var known []limiter.OpKind
		for _, kind := range []limiter.OpKind{limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve, limiter.Charge, limiter.Forget} {
			if c.supports(&q, kind) {
				known = append(known, kind)
			}
		}
		if len(known) == 0 {
			return
		}
		k := newWorldIn(t, rt, c).key(q)
		s := newSchedule(rt, c, k.quota, known)
		for range s.askCount() {
			k.sleep(s.pause())
			ask := s.drawAsk()
			before := *k.model.ideal.(*idealWarmUp) // its fractions are never changed in place
			got, want := k.askBackend(ask), k.model.do(k.now(), ask)
			if got.Allowed != want.Allowed || got.Taken != want.Taken {
				if k.borderline(before, ask, near) || ask.Kind == limiter.Charge && max(got.Taken-want.Taken, want.Taken-got.Taken) == 1 {
					return
				}
				rt.Fatalf("%s at %v: %s\n got %s\nwant %s", describeQuota(k.quota), k.now()-epoch, describeRequest(ask), describeResult(got), describeResult(want))
			}
			if got.Reason != want.Reason || got.Limit != want.Limit || max(got.Remaining-want.Remaining, want.Remaining-got.Remaining) > 1 ||
				!close(got.RetryAfter, want.RetryAfter) || !close(got.Delay, want.Delay) || !close(got.ResetAfter, want.ResetAfter) {
				rt.Fatalf("%s at %v: %s\n got %s\nwant %s, within %v", describeQuota(k.quota), k.now()-epoch, describeRequest(ask), describeResult(got), describeResult(want), near)
			}
		}
	})
}

// borderline reports whether the model decides differently a little earlier or later.
func (k *modelKey) borderline(before idealWarmUp, ask limiter.Request, near time.Duration) bool {
	decide := func(now time.Duration) (bool, int64) {
		ideal := before
		m := keyModel{q: k.quota, tick: k.model.tick, ideal: &ideal}
		r := m.do(now, ask)
		return r.Allowed, r.Taken
	}
	allowed, taken := decide(k.now() - near)
	allowedLater, takenLater := decide(k.now() + near)
	return allowed != allowedLater || taken != takenLater
}
