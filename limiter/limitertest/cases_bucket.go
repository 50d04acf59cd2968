package limitertest

import (
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// bucket returns a token bucket.
func bucket(rate rules.Rate, burst int64) rules.Quota {
	return rules.Quota{Algorithm: rules.TokenBucket, Rate: rate, Burst: burst}
}

var bucketCases = []namedCase{
	{"A1: a bucket starts full, and what it earns is never more", func(w *world) {
		k := w.key(bucket(perSecond(10), 3))
		k.wantAllowed(k.take(1), 2)
		k.wantAllowed(k.take(1), 1)
		k.wantAllowed(k.take(1), 0)
		k.wantDenied(k.take(1), 0, 100*ms)
		w.setClock(time.Hour)
		k.wantAllowed(k.take(2), 1)
		k.wantDenied(k.take(2), 1, 100*ms)
	}},
	{"A1: no remainder is lost between two asks", func(w *world) {
		k := w.key(bucket(perSecond(10), 1))
		k.wantAllowed(k.take(1), 0)
		w.setClock(100*ms - w.config.tick())
		k.wantDenied(k.take(1), 0, w.config.tick())
		w.setClock(150 * ms)
		k.wantAllowed(k.take(1), 0) // full at 100 ms; later permits are lost
		w.setClock(200 * ms)
		k.wantDenied(k.take(1), 0, 50*ms)
		w.setClock(250 * ms)
		k.wantAllowed(k.take(1), 0)
		b := w.keyNamed("limit", "two", bucket(perSecond(10), 2))
		b.wantAllowed(b.take(2), 0)
		for i := range time.Duration(30) { // it is asked at each half of a token
			w.setClock(250*ms + i*150*ms + 150*ms)
			if i%2 == 0 {
				b.wantAllowed(b.take(1), 0)
			} else {
				b.wantAllowed(b.take(2), 0)
			}
		}
	}},
	{"A1, B2: a bucket may start short of its burst", func(w *world) {
		q := bucket(perSecond(10), 5)
		q.Missing = 3
		k := w.key(q)
		k.wantAllowed(k.peek(0), 2)
		k.wantDenied(k.take(3), 2, 100*ms)
		k.wantAllowed(k.take(2), 0)
		w.setClock(100 * ms)
		k.wantAllowed(k.take(1), 0)
		q.Missing = 5
		empty := w.keyNamed("limit", "empty", q)
		empty.wantDenied(empty.take(1), 0, 100*ms)
	}},
	{"A2: a denial consumes nothing", func(w *world) {
		k := w.key(bucket(perSecond(1), 2))
		k.wantAllowed(k.take(2), 0)
		w.setClock(sec)
		for range 3 {
			k.wantDenied(k.take(2), 1, sec)
		}
		w.setClock(1500 * ms)
		k.wantDenied(k.take(2), 1, 500*ms)
		k.wantAllowed(k.take(1), 0)
		w.setClock(2 * sec)
		k.wantAllowed(k.take(1), 0)
	}},
	{"A2 bug: a first call above the capacity is refused at once, with no retry", func(w *world) {
		k := w.key(bucket(perSecond(10), 5))
		k.wantDenied(k.take(6), 5, 0)
		k.wantAllowed(k.take(5), 0)
		k.wantDenied(k.take(6), 0, 0)
		w.setClock(time.Hour)
		k.wantDenied(k.take(math.MaxInt64), 5, 0)
		k.wantDenied(k.peek(6), 5, 0)
	}},
	{"A2 bug: a bucket whose costs are above 1 is never overfilled", func(w *world) {
		k := w.key(bucket(perSecond(10), 5))
		k.wantAllowed(k.take(4), 1)
		w.setClock(10 * sec)
		k.wantAllowed(k.take(4), 1)
		k.wantDenied(k.take(4), 1, 300*ms)
		w.setClock(20 * sec)
		k.wantAllowed(k.peek(5), 5)
		k.wantDenied(k.peek(6), 5, 0)
	}},
	{"A4: what has had the time to become full is as new", func(w *world) {
		k := w.key(bucket(perSecond(10), 5))
		reset := k.take(5).ResetAfter
		if reset != 500*ms {
			k.Fatalf("full in %v, want 500ms", reset)
		}
		w.sleep(reset - w.config.tick())
		k.wantDenied(k.take(5), 4, w.config.tick())
		w.sleep(w.config.tick())
		k.wantAllowed(k.take(5), 0)
	}},
	{"A5: a negative limit is none", func(w *world) {
		for _, a := range rules.Algorithms {
			k := w.keyNamed("limit", string(a), rules.Quota{Algorithm: a, Burst: rules.Unlimited})
			for _, n := range []int64{0, 1, 1_000_000, math.MaxInt64} {
				k.wantAllowed(k.take(n), rules.Unlimited)
			}
			k.wantAllowed(k.peek(math.MaxInt64), rules.Unlimited)
			if a := k.atMost(7); a.Taken != 7 || a.Limit != rules.Unlimited {
				k.Fatalf("unlimited: %s", describeResult(a.Result))
			}
		}
	}},
	{"A7: a peek takes nothing, and tells what there is", func(w *world) {
		for k := range w.oneOfEach(5) {
			k.wantAllowed(k.take(2), 3)
			for range 3 {
				k.wantAllowed(k.peek(0), 3)
			}
			k.peek(3)
			k.peek(4)
			k.peek(6)
			k.wantAllowed(k.peek(0), 3)
		}
	}},
	{"B8 bug: rate 0.5/s polled each 1.1 s admits 504 in 999.9 s, not 5", func(w *world) {
		w.polls(bucket(rules.Rate{N: 1, Per: 2 * sec}, 5), 1100*ms, 1000*sec, 504)
	}},
	{"B8 bug: rate 10/s with a burst of 10 admits 1,010 in 100 s, not 500", func(w *world) {
		w.polls(bucket(perSecond(10), 10), 50*ms, 100*sec, 1010)
	}},
	{"B8 bug: a cost of several tokens takes them all", func(w *world) {
		k := w.key(bucket(perSecond(10), 10))
		k.wantAllowed(k.take(7), 3)
		k.wantDenied(k.take(4), 3, 100*ms)
		k.wantDenied(k.take(10), 3, 700*ms)
		k.wantAllowed(k.take(3), 0)
		w.setClock(550 * ms)
		k.wantAllowed(k.take(5), 0)
		k.wantDenied(k.take(1), 0, 50*ms)
	}},
	{"B8 bug: a drained bucket gives no free burst before it had the time to fill", func(w *world) {
		k := w.key(bucket(rules.Rate{N: 1, Per: day}, 1000))
		k.wantAllowed(k.take(1000), 0)
		w.setClock(time.Hour)
		k.wantDenied(k.take(1), 0, 23*time.Hour)
		w.setClock(10 * day)
		k.wantDenied(k.take(11), 10, day)
		k.wantAllowed(k.take(10), 0)
	}},
	{"B8 bug: two limits of one key keep apart what was taken", func(w *world) {
		a, b := w.keyNamed("one", "key", bucket(perSecond(10), 5)), w.keyNamed("two", "key", bucket(perSecond(1), 3))
		a.wantAllowed(a.take(5), 0)
		b.wantAllowed(b.take(3), 0)
		a.wantDenied(a.take(1), 0, 100*ms)
		b.wantDenied(b.take(1), 0, sec)
	}},
	{"B9: five points, one back each interval, spent on play", func(w *world) {
		k := w.key(bucket(rules.Rate{N: 1, Per: 6 * time.Minute}, 5))
		for left := int64(4); left >= 0; left-- {
			k.wantAllowed(k.take(1), left)
		}
		k.wantDenied(k.take(1), 0, 6*time.Minute)
		w.setClock(13 * time.Minute)
		k.wantAllowed(k.take(1), 1)
		w.setClock(24 * time.Hour)
		k.wantAllowed(k.take(1), 4)
	}},
	{"F2: what is above the capacity is refused, and does not wait for ever", func(w *world) {
		for k := range w.oneOfEach(5) {
			k.wantDenied(k.take(6), 5, 0)
			k.wantDenied(k.reserve(6, 1000*time.Hour), 5, 0)
			k.wantAllowed(k.take(5), 0)
			k.wantDenied(k.reserve(6, 1000*time.Hour), 0, 0)
		}
	}},
	{"F8: 10 at once, then wait", func(w *world) {
		for k := range w.oneOfEach(10) {
			for left := int64(9); left >= 0; left-- {
				k.wantAllowed(k.take(1), left)
			}
			if a := k.take(1); a.Allowed || a.RetryAfter <= 0 {
				k.Fatalf("%s: an eleventh: %s", describeQuota(k.quota), describeResult(a.Result))
			}
		}
	}},
	{"failure mode: a rate above 1,000/s does not round its interval to 0", func(w *world) {
		for _, rate := range []int64{4000, 5000, 200_000, rules.MaxRate} {
			k := w.keyNamed("limit", fmt.Sprint(rate), bucket(perSecond(rate), 1_000_000))
			k.take(1_000_000)
			w.sleep(50 * ms)
			earned := rate / 20
			k.wantAllowed(k.take(earned), 0)
			if a := k.take(1); a.Allowed {
				k.Fatalf("%d/s: one more: %s", rate, describeResult(a.Result))
			}
		}
	}},
	{"failure mode: a retry is told in nanoseconds of time, whatever the unit of the rate", func(w *world) {
		for _, rate := range []rules.Rate{perSecond(1), {N: 60, Per: time.Minute}, {N: 3600, Per: time.Hour}, {N: 86400, Per: day}} {
			k := w.keyNamed("limit", rate.String(), bucket(rate, 4))
			k.wantAllowed(k.take(4), 0)
			k.wantDenied(k.take(1), 0, sec)
			k.wantDenied(k.take(3), 0, 3*sec)
		}
	}},
}

// polls asks for one permit at a steady pace for a long time, which reveals clocks in whole
// seconds, lost remainders and intervals that are rounded to zero.
func (w *world) polls(q rules.Quota, pace, span time.Duration, want int64) {
	w.Helper()
	k := w.key(q)
	var got int64
	for t := time.Duration(0); t <= span; t += pace {
		w.setClock(t)
		got += k.take(1).Taken
	}
	if got != want {
		w.Fatalf("%s: admitted %d in %v, want %d", describeQuota(&q), got, span, want)
	}
}

// oneOfEach returns a quota of n permits for each algorithm. Its leaky bucket polices.
func oneOfEach(n int64) (all []rules.Quota) {
	for _, a := range rules.Algorithms {
		q := rules.Quota{Algorithm: a, Rate: rules.Rate{N: n, Per: 10 * sec}}
		all = append(all, q.WithDefaults())
	}
	return all
}

// oneOfEach returns a key for each of these quotas.
func (w *world) oneOfEach(n int64) iter.Seq[*modelKey] {
	return func(yield func(*modelKey) bool) {
		for _, q := range oneOfEach(n) {
			if !yield(w.keyNamed("limit", describeQuota(&q), q)) {
				return
			}
		}
	}
}
