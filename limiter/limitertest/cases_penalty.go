package limitertest

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func locked(q rules.Quota, d time.Duration) rules.Quota {
	q.Penalty = d
	return q
}

var penaltyCases = []namedCase{
	{"A3, B5: after a denial the key is locked, and is free again by itself", func(w *world) {
		for _, q := range oneOfEach(5) {
			k := w.keyNamed("limit", describeQuota(&q), locked(q, time.Minute))
			k.wantAllowed(k.take(5), 0)
			k.wantDenied(k.take(1), 0, time.Minute)
			w.sleep(time.Minute - w.config.tick())
			k.isLocked(k.take(1), w.config.tick())
			w.sleep(w.config.tick())
			k.wantAllowed(k.take(1), 4)
		}
	}},
	{"A3: a lock is not prolonged by what comes meanwhile", func(w *world) {
		k := w.key(locked(bucket(perSecond(10), 1), sec))
		k.take(1)
		k.wantDenied(k.take(1), 0, sec)
		for i := range time.Duration(9) {
			w.setClock((i + 1) * 100 * ms)
			k.isLocked(k.take(1), sec-(i+1)*100*ms)
		}
		w.setClock(sec)
		k.wantAllowed(k.take(1), 0)
	}},
	{"A3: the lock is checked first, whatever there is meanwhile", func(w *world) {
		k := w.key(locked(bucket(perSecond(10), 5), time.Minute))
		k.take(5)
		k.take(1)
		w.setClock(30 * sec) // it has been full for a long time
		for _, n := range []int64{0, 1, 5, 6, math.MaxInt64} {
			left := 30 * sec
			k.isLocked(k.atMost(n), left)
			if n > 5 {
				left = 0 // never
			}
			k.isLocked(k.take(n), left)
			k.isLocked(k.peek(n), left)
			k.isLocked(k.reserve(n, time.Hour), left)
		}
	}},
	{"A3: a lock that outlasts all windows ends on time, although other quotas look meanwhile", func(w *world) {
		blocks := func(per time.Duration, n int) rules.Quota {
			q := slidingBlocks(1, per, n)
			q.CountDenied = true
			return q
		}
		short, long := blocks(sec, 2), locked(blocks(7*sec, 2), 10*sec)
		k := w.key(short)
		k.under(short, take(1))
		denied := k.under(long, take(1))
		k.under(short, peek(1))
		k.under(blocks(7*sec, 3), peek(1))
		w.sleep(denied.RetryAfter)
		if r := k.under(long, take(1)); !r.Allowed {
			k.Fatalf("the retry on time was denied: %s, before it %s", describeResult(r), describeResult(denied))
		}
	}},
	{"A3: a lock that is shorter than the wait ends before it", func(w *world) {
		k := w.key(locked(bucket(perSecond(1), 1), 100*ms))
		k.take(1)
		k.wantDenied(k.take(1), 0, sec)
		w.setClock(50 * ms)
		k.isLocked(k.take(1), 950*ms)
		k.isLocked(k.take(0), 50*ms)
		w.setClock(100 * ms)
		k.wantDenied(k.take(1), 0, 900*ms)
	}},
	{"A3: a retry under a lock passes on time, whatever is asked", func(w *world) {
		for _, q := range oneOfEach(5) {
			for _, ask := range []limiter.Request{
				take(1), take(3), peek(4), {N: 1, Keep: 2}, {Kind: limiter.AtMost, N: 5}, {Kind: limiter.Reserve, N: 2, Within: 300 * ms},
			} {
				k := w.keyNamed("limit", describeQuota(&q)+describeRequest(ask), locked(q, 10*ms))
				k.take(5)
				k.take(5)
				w.sleep(5 * ms)
				a := k.do(ask)
				k.isLocked(a, a.ideal.RetryAfter)
				w.sleep(a.RetryAfter)
				if a = k.do(ask); !a.Allowed {
					k.Fatalf("%s: %s: the retry on time was denied: %s", describeQuota(k.quota), describeRequest(ask), describeResult(a.Result))
				}
			}
		}
	}},
	{"A3: 0 is off, and what can never be satisfied locks nobody", func(w *world) {
		k := w.key(locked(bucket(perSecond(10), 5), time.Minute))
		k.wantDenied(k.take(6), 5, 0)
		k.wantDenied(k.take(-1), 5, 0)
		k.wantDenied(k.peek(6), 5, 0)
		k.wantAllowed(k.take(5), 0)
		k.wantDenied(k.peek(1), 0, 100*ms)
		w.setClock(100 * ms)
		k.wantAllowed(k.take(1), 0)
		off := w.keyNamed("limit", "off", bucket(perSecond(10), 1))
		off.take(1)
		off.wantDenied(off.take(1), 0, 100*ms)
		w.setClock(200 * ms)
		off.wantAllowed(off.take(1), 0)
	}},
	{"A3 bug: while a key is locked nothing remains, and never less", func(w *world) {
		for _, q := range oneOfEach(5) {
			k := w.keyNamed("limit", describeQuota(&q), locked(q, time.Minute))
			k.take(5)
			k.take(1)
			w.sleep(sec)
			if a := k.take(1); a.Remaining != 0 || a.Limit != 5 {
				k.Fatalf("%s: %s", describeQuota(&q), describeResult(a.Result))
			}
			if a := k.peek(0); a.Remaining != 0 || a.Limit != 5 {
				k.Fatalf("%s: %s", describeQuota(&q), describeResult(a.Result))
			}
		}
	}},
	{"A3 bug: the retry of a sliding window is a time from now, locked or not", func(w *world) {
		for _, q := range []rules.Quota{slidingLog(3, sec), slidingBlocks(3, sec, 10)} {
			k := w.keyNamed("limit", describeQuota(&q), locked(q, 5*sec))
			k.take(3)
			k.wantDenied(k.take(1), 0, 5*sec)
			w.sleep(2 * sec)
			k.isLocked(k.take(1), 3*sec)
			w.sleep(3 * sec)
			k.wantAllowed(k.take(3), 0)
		}
	}},
	{"A3: a key that is forgotten is free", func(w *world) {
		k := w.key(locked(bucket(perSecond(1), 1), time.Minute))
		k.take(1)
		k.take(1)
		k.forget()
		k.wantAllowed(k.take(1), 0)
	}},
	{"A3: what is charged and given back under a lock counts", func(w *world) {
		k := w.key(locked(bucket(perSecond(1), 5), 10*sec))
		a := k.take(5)
		k.wantDenied(k.take(1), 0, 10*sec)
		k.giveBack(2, a)
		k.charge(1)
		w.setClock(sec)
		k.isLocked(k.peek(1), 9*sec)
		w.setClock(10 * sec)
		k.wantAllowed(k.take(5), 0)
	}},
}

func (k *modelKey) isLocked(a pairedResult, left time.Duration) {
	k.Helper()
	if a.Allowed || a.Reason != rules.ReasonLocked || a.Remaining != 0 || a.RetryAfter != left || a.Taken != 0 {
		k.Fatalf("%s at %v: got %s, want it locked for %v", describeQuota(k.quota), k.now()-epoch, describeResult(a.Result), left)
	}
}
