package limitertest

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/limiter"
)

// askCases are asks that every algorithm must answer alike.
var askCases = []namedCase{
	{"B4 bug: a denial tells when to ask again, for each algorithm", func(w *world) {
		for k := range w.oneOfEach(5) {
			k.take(5)
			a := k.take(1)
			if a.Allowed || a.RetryAfter <= 0 {
				k.Fatalf("%s: %s", describeQuota(k.quota), describeResult(a.Result))
			}
			w.sleep(a.RetryAfter - w.config.tick())
			if b := k.take(1); b.Allowed || b.RetryAfter != w.config.tick() {
				k.Fatalf("%s: a tick too early: %s", describeQuota(k.quota), describeResult(b.Result))
			}
			w.sleep(w.config.tick())
			if b := k.take(1); !b.Allowed {
				k.Fatalf("%s: on time: %s", describeQuota(k.quota), describeResult(b.Result))
			}
		}
	}},
	{"G: AtMost takes as many as there are", func(w *world) {
		for k := range w.oneOfEach(5) {
			for _, x := range []struct{ n, taken, left int64 }{{2, 2, 3}, {math.MaxInt64, 3, 0}} {
				a := k.atMost(x.n)
				k.wantAllowed(a, x.left)
				if a.Taken != x.taken {
					k.Fatalf("%s: at most %d: %s", describeQuota(k.quota), x.n, describeResult(a.Result))
				}
			}
			if a := k.atMost(3); a.Allowed || a.Taken != 0 || a.RetryAfter != k.peek(1).RetryAfter {
				k.Fatalf("%s: of none: %s", describeQuota(k.quota), describeResult(a.Result))
			}
		}
	}},
	{"G: a class that must leave some to others is denied first", func(w *world) {
		for k := range w.oneOfEach(5) {
			k.wantAllowed(k.takeKeep(2, 3), 3)
			if a := k.takeKeep(1, 3); a.Allowed || a.RetryAfter <= 0 || a.Remaining != 3 {
				k.Fatalf("%s: 3 are to be kept: %s", describeQuota(k.quota), describeResult(a.Result))
			}
			k.wantDenied(k.takeKeep(1, 5), 3, 0)
			k.wantDenied(k.takeKeep(1, math.MaxInt64), 3, 0)
			k.wantAllowed(k.takeKeep(1, 2), 2)
			if a := k.do(limiter.Request{Kind: limiter.AtMost, N: 9, Keep: 1}); a.Taken != 1 {
				k.Fatalf("%s: at most 9, of 2, keeping 1: %s", describeQuota(k.quota), describeResult(a.Result))
			}
			k.wantAllowed(k.take(1), 0)
		}
	}},
	{"G: a reservation is served later, in the order of asking", func(w *world) {
		k := w.key(bucket(perSecond(10), 5))
		k.wantAllowed(k.reserve(5, 0), 0)
		k.wantDenied(k.reserve(1, 99*ms), 0, ms)
		k.wantDelayed(k.reserve(1, 100*ms), 100*ms)
		k.wantDelayed(k.reserve(3, sec), 400*ms)
		k.wantDenied(k.take(1), 0, 500*ms)
		w.setClock(500 * ms)
		k.wantAllowed(k.take(1), 0)
	}},
	{"G: a reservation that is cancelled gives back what was reserved", func(w *world) {
		for k := range w.oneOfEach(5) {
			k.wantAllowed(k.take(5), 0)
			before := k.peek(1).RetryAfter
			a := k.reserve(3, time.Hour)
			if !a.Allowed || a.Delay <= 0 {
				k.Fatalf("%s: %s", describeQuota(k.quota), describeResult(a.Result))
			}
			k.giveBack(3, a)
			if after := k.peek(1).RetryAfter; after != before {
				k.Fatalf("%s: a permit in %v before the reservation, in %v after it was cancelled", describeQuota(k.quota), before, after)
			}
		}
	}},
	{"failure mode: a reservation that is cancelled after its time gives back nothing that has come back", func(w *world) {
		for k := range w.oneOfEach(5) {
			a := k.take(5)
			b := k.reserve(2, time.Hour)
			w.sleep(time.Minute)
			k.giveBack(2, b)
			k.giveBack(5, a)
			k.wantAllowed(k.peek(0), 5)
			k.wantAllowed(k.take(5), 0)
			if c := k.take(1); c.Allowed {
				k.Fatalf("%s: a sixth of five: %s", describeQuota(k.quota), describeResult(c.Result))
			}
		}
	}},
}
