package limitertest

import (
	"math"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

var clockCases = []namedCase{
	{"failure mode: a clock that goes back refills nothing twice", func(w *world) {
		k := w.key(bucket(perSecond(10), 2))
		k.loose = true
		w.at(10 * sec)
		k.yes(k.take(2), 0)
		w.at(9 * sec)
		k.no(k.take(1), 0, 1100*ms)
		w.at(9900 * ms)
		k.no(k.take(1), 0, 200*ms)
		w.at(10 * sec)
		k.no(k.take(1), 0, 100*ms)
		w.at(10100 * ms)
		k.yes(k.take(1), 0)
		w.at(9 * sec)
		k.yes(k.take(0), 0)
		w.at(10100 * ms)
		k.no(k.take(1), 0, 100*ms)
		w.at(10200 * ms)
		k.yes(k.take(1), 0)
	}},
	{"failure mode: a clock that goes back by less than a minute grants nothing, for each algorithm", func(w *world) {
		for _, q := range oneOfEach(5) {
			k := w.named("limit", told(&q), q)
			k.loose = true
			k.yes(k.take(5), 0)
			now := w.now()
			for _, back := range []time.Duration{w.config.tick(), sec, 30 * sec, time.Minute} {
				w.clock.Store(int64(now - back))
				if a := k.take(1); a.Allowed {
					k.Fatalf("%s: the clock went back by %v, and grants: %s", told(&q), back, toldResult(a.Result))
				}
			}
			w.clock.Store(int64(now + 10*sec))
			k.yes(k.take(5), 0)
			w.sleep(10 * time.Minute)
		}
	}},
	{"failure mode: a clock that is set back by hours grants nothing, and locks nobody out", func(w *world) {
		for _, q := range oneOfEach(5) {
			w.sleep(10 * day)
			k := w.named("limit", told(&q), q)
			k.loose = true
			k.yes(k.take(5), 0)
			w.sleep(-5 * time.Hour)
			k.usable(k.take(1))
		}
	}},
	{"failure mode: a clock that jumps years ahead and back grants one burst, and locks nobody out", func(w *world) {
		for _, q := range oneOfEach(5) {
			k := w.named("limit", told(&q), q)
			k.loose = true
			k.yes(k.take(5), 0)
			w.sleep(3 * 365 * day)
			k.yes(k.take(5), 0)
			k.denied(k.take(1))
			w.sleep(-3 * 365 * day)
			k.usable(k.take(1))
		}
	}},
	{"a penalty does not outlive a clock that is set back", func(w *world) {
		k := w.key(locked(bucket(perSecond(10), 1), sec))
		k.loose = true
		w.at(10 * day)
		k.take(1)
		k.denied(k.take(1))
		w.at(0)
		k.usable(k.take(1))
	}},
}

// denied fails unless it was.
func (k *key) denied(a answer) {
	k.Helper()
	if a.Allowed {
		k.Fatalf("%s at %v: got %s, want it denied", told(k.quota), k.now()-epoch, toldResult(a.Result))
	}
}

// usable fails unless what was denied just now, on a clock that was set back, passes
// within what comes back and a minute.
func (k *key) usable(a answer) {
	k.Helper()
	k.denied(a)
	longest := k.quota.Rate.Per + k.quota.Penalty + time.Minute
	if a.RetryAfter <= 0 || a.RetryAfter > longest {
		k.Fatalf("%s: the clock was set back: denied for %v, want %v at most", told(k.quota), a.RetryAfter, longest)
	}
	k.sleep(longest)
	if a := k.take(1); !a.Allowed {
		k.Fatalf("%s: %v after the clock was set back: %s", told(k.quota), longest, toldResult(a.Result))
	}
}

// change gives the key another quota. The model knows of none, and is not asked again.
func (k *key) change(q hotparam.Quota) {
	q = q.WithDefaults()
	k.quota, k.op.Quota, k.loose = &q, &q, true
}

// wants fails unless so many remain.
func (k *key) wants(r limiter.Result, left int64) {
	k.Helper()
	if r.Remaining != left || r.Limit != k.quota.Burst {
		k.Fatalf("%s at %v: got %s, want %d left", told(k.quota), k.now()-epoch, toldResult(r), left)
	}
}

var changeCases = []namedCase{
	{"A7: another quota that is equal changes nothing", func(w *world) {
		for _, q := range oneOfEach(5) {
			k := w.named("limit", told(&q), q)
			k.yes(k.take(3), 2)
			same := *k.quota
			k.op.Quota = &same
			k.yes(k.take(1), 1)
			k.yes(k.take(1), 0)
		}
	}},
	{"A7: what was taken of a bucket stays taken when its quota changes", func(w *world) {
		for _, a := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.GCRA, hotparam.LeakyBucket} {
			q := hotparam.Quota{Algorithm: a, Rate: perSecond(10), Burst: 10}
			k := w.named("limit", string(a), q)
			k.yes(k.take(4), 6)
			q.Rate, q.Burst = perSecond(100), 20
			k.change(q)
			k.wants(k.ask(peek(0)), 16)
			q.Rate, q.Burst = perSecond(1), 5
			k.change(q)
			k.wants(k.ask(peek(0)), 1)
			q.Burst = 3 // fewer than are missing
			k.change(q)
			k.wants(k.ask(peek(0)), 0)
			q.Burst = 5 // as many are missing as before
			k.change(q)
			k.wants(k.ask(peek(0)), 1)
			w.sleep(time.Minute)
			k.wants(k.ask(peek(0)), 5)
		}
	}},
	{"A7, F9: counters survive a changed limit and a changed window", func(w *world) {
		k := w.key(window(5, 10*sec))
		k.yes(k.take(3), 2)
		w.at(5 * sec)
		k.change(window(8, 10*sec))
		k.wants(k.ask(peek(0)), 5)
		k.change(window(8, time.Minute))
		k.wants(k.ask(peek(0)), 5)
		w.at(15 * sec)
		k.wants(k.ask(peek(0)), 5)
		k.change(window(2, time.Minute))
		k.wants(k.ask(peek(0)), 0)
		w.at(time.Minute)
		k.wants(k.ask(take(1)), 1)
	}},
	{"A7: what is logged survives a changed limit", func(w *world) {
		k := w.key(slidingLog(5, 10*sec))
		k.yes(k.take(3), 2)
		w.at(5 * sec)
		k.change(slidingLog(8, 10*sec))
		k.wants(k.ask(take(1)), 4)
		w.at(10 * sec)
		k.wants(k.ask(peek(0)), 7)
		k.change(slidingLog(8, 4*sec)) // the hit at 5 s is out of it
		k.wants(k.ask(peek(0)), 8)
	}},
	{"A7: what is counted in blocks survives a changed limit", func(w *world) {
		k := w.key(slidingBlocks(5, 10*sec, 10))
		k.yes(k.take(3), 2)
		k.change(slidingBlocks(8, 10*sec, 10))
		k.wants(k.ask(peek(0)), 5)
		w.at(10 * sec)
		k.wants(k.ask(peek(0)), 8)
	}},
	{"A7: another algorithm starts anew, and the first one finds what it left", func(w *world) {
		k := w.key(bucket(perSecond(10), 5))
		k.yes(k.take(5), 0)
		k.change(slidingLog(5, sec))
		k.wants(k.ask(take(1)), 4)
		k.change(window(5, sec))
		k.wants(k.ask(take(1)), 4)
		w.sleep(200 * ms)
		k.change(bucket(perSecond(10), 5))
		k.wants(k.ask(take(1)), 1)
	}},
	{"failure mode: a limit of 0 or less is never taken for one that lets pass", func(w *world) {
		for _, q := range oneOfEach(1) {
			k := w.named("limit", told(&q), q)
			k.yes(k.take(1), 0)
			k.denied(k.take(1))
			k.no(k.take(math.MaxInt64), 0, 0)
		}
	}},
}

var warmUpCases = []namedCase{
	{"F3: what is cold begins at a part of its rate, and comes to the whole", func(w *world) {
		// Guava's own case: 1/s, a warm-up of 10 s and a factor of 3: 5 permits at the
		// threshold, 10 stored by a cold one; the 5 that are above take 10 s.
		k := w.key(hotparam.Quota{Algorithm: hotparam.TokenBucket, Rate: perSecond(1), Burst: 1, WarmUp: 10 * sec})
		var gaps []time.Duration
		for range 12 {
			r := k.ask(take(1))
			if !r.Allowed {
				k.Fatalf("%s", toldResult(r))
			}
			r = k.ask(peek(1))
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
		if r := k.ask(take(1)); !r.Allowed {
			k.Fatalf("%s", toldResult(r))
		}
		if r := k.ask(peek(1)); r.RetryAfter < 2*sec {
			k.Fatalf("after an hour it is not cold again: %s", toldResult(r))
		}
	}},
}
