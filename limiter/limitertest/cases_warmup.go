package limitertest

import (
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func warming(rate rules.Rate, burst int64, warmUp time.Duration) rules.Quota {
	return rules.Quota{Algorithm: rules.TokenBucket, Rate: rate, Burst: burst, WarmUp: warmUp}
}

var warmUpCases = []namedCase{
	{"F3: what is cold begins at a part of its rate, and comes to the whole", func(w *world) {
		// Guava's own case is 1/s, a warm-up of 10 s and a factor of 3. That makes 5 permits at
		// the threshold and 10 stored by a cold bucket; the 5 above the threshold take 10 s.
		k := w.key(rules.Quota{Algorithm: rules.TokenBucket, Rate: perSecond(1), Burst: 1, WarmUp: 10 * sec})
		var gaps []time.Duration
		for range 12 {
			r := k.askBackend(take(1))
			if !r.Allowed {
				k.Fatalf("%s", describeResult(r))
			}
			r = k.askBackend(peek(1))
			gaps = append(gaps, r.RetryAfter)
			w.sleep(r.RetryAfter)
		}
		var warm time.Duration
		for i, gap := range gaps {
			want := sec
			if i < 5 { // from 3 s to 1 s, in 5 steps along a line
				want = time.Duration((3 - 0.4*(float64(i)+0.5)) * float64(sec))
				warm += gap
			}
			if off := gap - want; off > 3*us || off < -3*us {
				k.Fatalf("permit %d took %v, want %v", i, gap, want)
			}
		}
		if off := warm - 10*sec; off > 10*us || off < -10*us {
			k.Fatalf("warm after %v, want 10s", warm)
		}
		w.sleep(time.Hour)
		if r := k.askBackend(take(1)); !r.Allowed {
			k.Fatalf("%s", describeResult(r))
		}
		if r := k.askBackend(peek(1)); r.RetryAfter < 2*sec {
			k.Fatalf("after an hour it is not cold again: %s", describeResult(r))
		}
	}},
	{"a cost is charged to a bucket that is cold", func(w *world) {
		for _, q := range []rules.Quota{
			warming(perMinute(1), 1, 10*time.Minute),
			warming(perSecond(10), 1, 10*sec),
			warming(perSecond(1000), 5, time.Minute),
			{Algorithm: rules.TokenBucket, Rate: perSecond(1), Burst: 1, WarmUp: time.Hour, ColdFactor: 1000},
		} {
			for _, cost := range []int64{1, 20, 1 << 20} {
				k := w.keyNamed("limit", describeQuota(&q)+time.Duration(cost).String(), q)
				served := int64(0)
				for range 1000 {
					if k.under(q, peek(1)).Allowed {
						served++
						k.under(q, limiter.Request{Kind: limiter.Charge, N: cost})
					}
				}
				if served < 1 || served > q.Burst {
					k.Fatalf("%s: served %d at once, each charged %d", describeQuota(&q), served, cost)
				}
			}
		}
	}},
	{"a cost warms a bucket up as a take does", func(w *world) {
		q := warming(perSecond(1), 1, 10*sec)
		taken, charged := w.keyNamed("limit", "taken", q), w.keyNamed("limit", "charged", q)
		for range 12 {
			taken.under(q, take(1))
			charged.under(q, peek(1))
			charged.under(q, limiter.Request{Kind: limiter.Charge, N: 1})
			a, b := taken.under(q, peek(1)), charged.under(q, peek(1))
			if off := a.RetryAfter - b.RetryAfter; off > 3*us || off < -3*us {
				w.Fatalf("%s: a take is followed by one after %v, a charge after %v", describeQuota(&q), a.RetryAfter, b.RetryAfter)
			}
			w.sleep(max(a.RetryAfter, b.RetryAfter))
		}
	}},
	{"a cost beyond what may be owed warms a bucket up as far as it is owed", func(w *world) {
		q := warming(perMinute(1), 1, 10*time.Minute) // a cold permit costs 3 minutes, and 2 may be owed
		k := w.key(q)
		for i := range 40 {
			r := k.under(q, peek(1))
			w.sleep(r.RetryAfter)
			if i > 30 && r.RetryAfter > 2*time.Minute+sec {
				w.Fatalf("%s: charge %d is paid after %v", describeQuota(&q), i, r.RetryAfter)
			}
			k.under(q, limiter.Request{Kind: limiter.Charge, N: 20})
		}
		w.sleep(k.under(q, peek(1)).RetryAfter)
		k.under(q, take(1))
		if r := k.under(q, peek(1)); r.RetryAfter > time.Minute+sec {
			w.Fatalf("%s: it is not warm after 40 charges: %s", describeQuota(&q), describeResult(r))
		}
	}},
}
