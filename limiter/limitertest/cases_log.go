package limitertest

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

func slidingLog(n int64, per time.Duration) rules.Quota {
	return rules.Quota{Algorithm: rules.SlidingLog, Rate: rules.Rate{N: n, Per: per}}
}

func slidingBlocks(n int64, per time.Duration, blocks int) rules.Quota {
	return rules.Quota{Algorithm: rules.SlidingBlocks, Rate: rules.Rate{N: n, Per: per}, Blocks: blocks}
}

var logCases = []namedCase{
	{"D1: at most max in any period, and a hit leaves it exactly a period later", func(w *world) {
		k := w.key(slidingLog(3, sec))
		for i := range time.Duration(3) {
			w.setClock(i * 100 * ms)
			k.wantAllowed(k.take(1), 2-int64(i))
		}
		w.setClock(500 * ms)
		k.wantDenied(k.take(1), 0, 500*ms)
		k.wantDenied(k.take(2), 0, 600*ms)
		w.setClock(sec - w.config.tick())
		k.wantDenied(k.take(1), 0, w.config.tick())
		w.setClock(sec)
		k.wantAllowed(k.take(1), 0)
		k.wantDenied(k.take(1), 0, 100*ms)
	}},
	{"D1 bug: two hits in one instant both count", func(w *world) {
		k := w.key(slidingLog(3, sec))
		k.wantAllowed(k.take(1), 2)
		k.wantAllowed(k.take(1), 1)
		k.wantAllowed(k.take(1), 0)
		k.wantDenied(k.take(1), 0, sec)
	}},
	{"D1 bug: who hammers recovers, since denials are not recorded", func(w *world) {
		for k := range w.oneOfEach(5) {
			passed := int64(0)
			for range 200 {
				w.sleep(500 * ms)
				passed += k.take(1).Taken
			}
			if passed < 45 { // 5 in 10 s, for 100 s
				k.Fatalf("%s: who hammers for 100 s passes %d times", describeQuota(k.quota), passed)
			}
		}
	}},
	{"D1: count_denied records what is denied, and who hammers stays out", func(w *world) {
		for i, q := range []rules.Quota{slidingLog(3, sec), slidingBlocks(3, sec, 10)} {
			q.CountDenied = true
			k := w.keyNamed("limit", describeQuota(&q), q)
			start := time.Duration(i) * time.Hour
			w.setClock(start)
			k.wantAllowed(k.take(3), 0)
			for i := range time.Duration(20) {
				w.setClock(start + (i+1)*300*ms)
				if a := k.take(1); a.Allowed {
					k.Fatalf("%s: who hammers passes: %s", describeQuota(&q), describeResult(a.Result))
				}
			}
			w.setClock(start + 7*sec + 100*ms)
			k.wantAllowed(k.take(1), 2)
		}
	}},
	{"D1: an idle key is as new", func(w *world) {
		k := w.key(slidingLog(3, sec))
		if a := k.take(3); a.ResetAfter != sec {
			k.Fatalf("as new in %v, want 1s", a.ResetAfter)
		}
		w.setClock(sec)
		k.wantAllowed(k.peek(3), 3)
		if a := k.peek(0); a.ResetAfter != 0 {
			k.Fatalf("as new in %v, want 0", a.ResetAfter)
		}
	}},
	{"D1: a log of many hits, far more than a script may unpack", func(w *world) {
		k := w.key(slidingLog(9000, time.Hour))
		k.loose = true // the model counts them all each time
		for i := range 4500 {
			w.sleep(ms)
			if r := k.askBackend(take(2)); !r.Allowed || r.Remaining != 9000-2*int64(i+1) {
				k.Fatalf("hit %d: %s", i, describeResult(r))
			}
		}
		if r := k.askBackend(take(1)); r.Allowed || r.RetryAfter != time.Hour-4499*ms {
			k.Fatalf("one more: %s", describeResult(r))
		}
		w.setClock(time.Hour + 3*sec)
		if r := k.askBackend(take(6000)); !r.Allowed || r.Remaining != 0 {
			k.Fatalf("two thirds are back: %s", describeResult(r))
		}
	}},
	{"E4 bug: permits come back, not entries", func(w *world) {
		k := w.key(slidingLog(5, sec))
		k.wantAllowed(k.take(3), 2)
		w.setClock(200 * ms)
		k.wantAllowed(k.take(2), 0)
		w.setClock(sec)
		k.wantDenied(k.take(4), 3, 200*ms)
		k.wantAllowed(k.take(3), 0)
		k.wantDenied(k.take(1), 0, 200*ms)
	}},
	{"G: what is given back is gone from the log, and from no other hit", func(w *world) {
		k := w.key(slidingLog(5, sec))
		a := k.take(2)
		w.setClock(100 * ms)
		b := k.take(3)
		k.wantAllowed(k.giveBack(2, a), 2)
		w.setClock(sec)
		k.wantAllowed(k.peek(0), 2) // the permits of a do not return a second time
		w.setClock(1100 * ms)
		k.wantAllowed(k.giveBack(3, b), 5)
	}},
}

var blockCases = []namedCase{
	{"F5: a window in blocks moves on block by block", func(w *world) {
		k := w.key(slidingBlocks(5, sec, 10))
		w.setClock(50 * ms)
		k.wantAllowed(k.take(3), 2)
		w.setClock(150 * ms)
		k.wantAllowed(k.take(2), 0)
		k.wantDenied(k.take(1), 0, 850*ms)
		k.wantDenied(k.take(4), 0, 950*ms)
		w.setClock(sec)
		k.wantAllowed(k.take(3), 0)
		k.wantDenied(k.take(1), 0, 100*ms)
	}},
	{"F5: 0 permits peek, and permits are of any unit", func(w *world) {
		k := w.key(slidingBlocks(1_000_000, sec, 10)) // bytes
		k.wantAllowed(k.take(999_999), 1)
		k.wantAllowed(k.take(0), 1)
		k.wantDenied(k.take(1000), 1, sec)
		k.wantAllowed(k.take(1), 0)
	}},
	{"F5 bug: after an idle spell longer than the window nothing is left of it", func(w *world) {
		k := w.key(slidingBlocks(5, sec, 10))
		for _, t := range []time.Duration{0, sec, 2500 * ms, 10 * sec, time.Hour, 400 * day} {
			w.setClock(t)
			k.wantAllowed(k.take(5), 0)
			k.wantDenied(k.take(1), 0, sec-t%(100*ms))
		}
	}},
	{"F5 bug: a first call above the limit is refused", func(w *world) {
		k := w.key(slidingBlocks(5, sec, 10))
		k.wantDenied(k.take(6), 5, 0)
		k.wantAllowed(k.take(5), 0)
	}},
	{"F5 bug: blocks that come round again keep no stale counts", func(w *world) {
		k := w.key(slidingBlocks(10, sec, 4))
		for i := range time.Duration(100) { // each result is compared with the model's
			w.setClock(i * 130 * ms)
			k.take(1 + int64(i)%3)
			if i%17 == 0 {
				w.sleep(700 * ms)
			}
		}
	}},
	{"F5: blocks as fine as may be", func(w *world) {
		k := w.key(slidingBlocks(2000, 10*sec, rules.MaxBlocks))
		for i := range time.Duration(1100) {
			w.setClock(i * 10 * ms)
			k.askBackend(take(2)) // without the model, which is slow
		}
		if r := k.askBackend(peek(0)); r.Remaining != 0 {
			k.Fatalf("two in each block: %s", describeResult(r))
		}
		w.setClock(11 * sec)
		if r := k.askBackend(peek(0)); r.Remaining != 2 {
			k.Fatalf("one block later: %s", describeResult(r))
		}
	}},
}
