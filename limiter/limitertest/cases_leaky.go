package limitertest

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

func leaky(rate rules.Rate, places int64, shape bool) rules.Quota {
	return rules.Quota{Algorithm: rules.LeakyBucket, Rate: rate, Burst: places, Shape: shape}
}

var leakyCases = []namedCase{
	{"A5: a leaky bucket that polices admits what has a place, at once", func(w *world) {
		k := w.key(leaky(perSecond(10), 3, false))
		k.wantAllowed(k.take(3), 0)
		k.wantDenied(k.take(1), 0, 100*ms)
		w.setClock(150 * ms)
		k.wantAllowed(k.take(1), 0)
		k.wantDenied(k.take(1), 0, 50*ms)
		w.setClock(time.Minute)
		k.wantAllowed(k.take(2), 1)
	}},
	{"B7: shaped, request k waits until those before it have left", func(w *world) {
		k := w.key(leaky(perSecond(10), 5, true))
		for i := range time.Duration(5) {
			a := k.take(1)
			k.wantDelayed(a, i*100*ms)
			if a.Remaining != 4-int64(i) {
				k.Fatalf("request %d: %s", i, describeResult(a.Result))
			}
		}
		k.wantDenied(k.take(1), 0, 100*ms)
	}},
	{"B7 bug: shaped, nobody waits until the bucket is wholly empty", func(w *world) {
		k := w.key(leaky(perSecond(10), 5, true))
		k.wantDelayed(k.take(3), 0)
		k.wantDelayed(k.take(1), 300*ms)
		w.setClock(150 * ms)
		k.wantDelayed(k.take(1), 250*ms) // not 500 ms, when that one has left as well
		w.setClock(10 * sec)
		k.wantDelayed(k.take(1), 0)
	}},
	{"B7: shaped, a reservation is refused if its turn comes too late", func(w *world) {
		k := w.key(leaky(perSecond(10), 5, true))
		k.wantDelayed(k.take(4), 0)
		k.wantDenied(k.reserve(1, 300*ms), 1, 100*ms)
		k.wantDelayed(k.reserve(1, 400*ms), 400*ms)
		k.wantDenied(k.reserve(1, time.Hour), 0, 100*ms) // full
		k.wantDenied(k.reserve(1, 300*ms), 0, 200*ms)    // room in 100 ms, its turn in 200
	}},
	{"D2: a funnel leaks fractions of its quota", func(w *world) {
		k := w.key(leaky(rules.Rate{N: 1, Per: 2 * sec}, 15, false)) // half a place a second
		k.wantAllowed(k.take(15), 0)
		w.setClock(sec)
		k.wantDenied(k.take(1), 0, sec)
		w.setClock(3 * sec)
		k.wantAllowed(k.take(1), 0)
		k.wantDenied(k.take(1), 0, sec)
	}},
	{"D2 bug: a funnel takes another capacity and another rate", func(w *world) {
		k := w.key(leaky(perSecond(1), 5, false))
		k.wantAllowed(k.take(5), 0)
		k.change(leaky(perSecond(10), 8, false))
		k.wants(k.askBackend(peek(0)), 3)
		w.setClock(200 * ms)
		k.wants(k.askBackend(peek(0)), 5)
	}},
	{"F2: a wait is exactly (occupied + n - capacity) / rate", func(w *world) {
		for _, a := range []rules.Algorithm{rules.LeakyBucket, rules.TokenBucket, rules.GCRA} {
			q := leaky(perSecond(10), 5, false)
			q.Algorithm = a
			k := w.keyNamed("limit", string(a), q)
			k.wantAllowed(k.take(3), 2)
			k.wantDenied(k.take(4), 2, 200*ms)
			k.wantDelayed(k.reserve(4, sec), 200*ms)
			k.wantDelayed(k.reserve(1, sec), 300*ms)
			k.wantDenied(k.take(1), 0, 400*ms)
		}
	}},
	{"F2: shaping and policing admit the same", func(w *world) {
		police, shape := w.keyNamed("limit", "police", leaky(perSecond(10), 5, false)), w.keyNamed("limit", "shape", leaky(perSecond(10), 5, true))
		for i := range time.Duration(40) {
			w.setClock(i * 30 * ms)
			n := int64(i % 4)
			a, b := police.take(n), shape.take(n)
			if b.Delay = 0; a.Decision != b.Decision {
				w.Fatalf("take %d: policing %s, shaping %s", n, describeResult(a.Result), describeResult(b.Result))
			}
		}
	}},
}
