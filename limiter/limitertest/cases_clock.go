package limitertest

import (
	"time"
)

// clockCases are about clocks that jump. Algorithms may differ in their answers on a clock that went
// back, so the keys are loose: Results are not compared with the model's.
var clockCases = []namedCase{
	{"failure mode: a clock that goes back refills nothing twice", func(w *world) {
		k := w.key(bucket(perSecond(10), 2))
		k.loose = true
		w.setClock(10 * sec)
		k.wantAllowed(k.take(2), 0)
		w.setClock(9 * sec)
		k.wantDenied(k.take(1), 0, 1100*ms)
		w.setClock(9900 * ms)
		k.wantDenied(k.take(1), 0, 200*ms)
		w.setClock(10 * sec)
		k.wantDenied(k.take(1), 0, 100*ms)
		w.setClock(10100 * ms)
		k.wantAllowed(k.take(1), 0)
		w.setClock(9 * sec)
		k.wantAllowed(k.take(0), 0)
		w.setClock(10100 * ms)
		k.wantDenied(k.take(1), 0, 100*ms)
		w.setClock(10200 * ms)
		k.wantAllowed(k.take(1), 0)
	}},
	{"failure mode: a clock that goes back by up to a minute grants nothing, for each algorithm", func(w *world) {
		for k := range w.oneOfEach(5) {
			k.loose = true
			k.wantAllowed(k.take(5), 0)
			now := w.now()
			for _, back := range []time.Duration{w.config.tick(), sec, 30 * sec, time.Minute} {
				w.clock.Store(int64(now - back))
				if a := k.take(1); a.Allowed {
					k.Fatalf("%s: the clock went back by %v, and grants: %s", describeQuota(k.quota), back, describeResult(a.Result))
				}
			}
			w.clock.Store(int64(now + 10*sec))
			k.wantAllowed(k.take(5), 0)
			w.sleep(10 * time.Minute)
		}
	}},
	{"failure mode: a clock that is set back by hours grants nothing, and locks nobody out", func(w *world) {
		for _, q := range oneOfEach(5) {
			w.sleep(10 * day)
			k := w.keyNamed("limit", describeQuota(&q), q)
			k.loose = true
			k.wantAllowed(k.take(5), 0)
			w.sleep(-5 * time.Hour)
			k.wantUsableLater(k.take(1))
		}
	}},
	{"failure mode: a clock that jumps years ahead and back grants one burst, and locks nobody out", func(w *world) {
		for k := range w.oneOfEach(5) {
			k.loose = true
			k.wantAllowed(k.take(5), 0)
			w.sleep(3 * 365 * day)
			k.wantAllowed(k.take(5), 0)
			k.wantAnyDenial(k.take(1))
			w.sleep(-3 * 365 * day)
			k.wantUsableLater(k.take(1))
		}
	}},
	{"a penalty does not outlive a clock that is set back", func(w *world) {
		k := w.key(locked(bucket(perSecond(10), 1), sec))
		k.loose = true
		w.setClock(10 * day)
		k.take(1)
		k.wantAnyDenial(k.take(1))
		w.setClock(0)
		k.wantUsableLater(k.take(1))
	}},
}

// wantAnyDenial fails unless a was denied, whatever its RetryAfter.
func (k *modelKey) wantAnyDenial(a pairedResult) {
	k.Helper()
	if a.Allowed {
		k.Fatalf("%s at %v: got %s, want it denied", describeQuota(k.quota), k.now()-epoch, describeResult(a.Result))
	}
}

// wantUsableLater fails unless an ask, denied on a clock that was set back, passes within a minute plus
// the time of the rate and the penalty.
func (k *modelKey) wantUsableLater(a pairedResult) {
	k.Helper()
	k.wantAnyDenial(a)
	longest := k.quota.Rate.Per + k.quota.Penalty + time.Minute
	if a.RetryAfter <= 0 || a.RetryAfter > longest {
		k.Fatalf("%s: the clock was set back: denied for %v, want %v at most", describeQuota(k.quota), a.RetryAfter, longest)
	}
	k.sleep(longest)
	if a := k.take(1); !a.Allowed {
		k.Fatalf("%s: %v after the clock was set back: %s", describeQuota(k.quota), longest, describeResult(a.Result))
	}
}
