package limitertest

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// change gives the key another quota. The model supports only one, and is not asked again.
func (k *modelKey) change(q rules.Quota) {
	q = q.WithDefaults()
	k.quota, k.op.Quota, k.loose = &q, &q, true
}

// wants fails unless left permits remain.
func (k *modelKey) wants(r limiter.Result, left int64) {
	k.Helper()
	if r.Remaining != left || r.Limit != k.quota.Burst {
		k.Fatalf("%s at %v: got %s, want %d left", describeQuota(k.quota), k.now()-epoch, describeResult(r), left)
	}
}

var changeCases = []namedCase{
	{"A7: what was taken of a bucket stays taken when its quota changes", func(w *world) {
		for _, a := range []rules.Algorithm{rules.TokenBucket, rules.GCRA, rules.LeakyBucket} {
			q := rules.Quota{Algorithm: a, Rate: perSecond(10), Burst: 10}
			k := w.keyNamed("limit", string(a), q)
			k.wantAllowed(k.take(4), 6)
			q.Rate, q.Burst = perSecond(100), 20
			k.change(q)
			k.wants(k.askBackend(peek(0)), 16)
			q.Rate, q.Burst = perSecond(1), 5
			k.change(q)
			k.wants(k.askBackend(peek(0)), 1)
			q.Burst = 3 // fewer than the bucket lacks
			k.change(q)
			k.wants(k.askBackend(peek(0)), 0)
			q.Burst = 5 // the bucket lacks as many as before
			k.change(q)
			k.wants(k.askBackend(peek(0)), 1)
			w.sleep(time.Minute)
			k.wants(k.askBackend(peek(0)), 5)
		}
	}},
	{"A7, F9: counters survive a changed limit and a changed window", func(w *world) {
		k := w.key(window(5, 10*sec))
		k.wantAllowed(k.take(3), 2)
		w.setClock(5 * sec)
		k.change(window(8, 10*sec))
		k.wants(k.askBackend(peek(0)), 5)
		k.change(window(8, time.Minute))
		k.wants(k.askBackend(peek(0)), 5)
		w.setClock(15 * sec)
		k.wants(k.askBackend(peek(0)), 5)
		k.change(window(2, time.Minute))
		k.wants(k.askBackend(peek(0)), 0)
		w.setClock(time.Minute)
		k.wants(k.askBackend(take(1)), 1)
	}},
	{"A7: another algorithm starts anew, and the first one finds what it left", func(w *world) {
		k := w.key(bucket(perSecond(10), 5))
		k.wantAllowed(k.take(5), 0)
		k.change(slidingLog(5, sec))
		k.wants(k.askBackend(take(1)), 4)
		k.change(window(5, sec))
		k.wants(k.askBackend(take(1)), 4)
		w.sleep(200 * ms)
		k.change(bucket(perSecond(10), 5))
		k.wants(k.askBackend(take(1)), 1)
	}},
	{"failure mode: a limit of 0 or less is never taken for one that lets pass", func(w *world) {
		for k := range w.oneOfEach(1) {
			k.wantAllowed(k.take(1), 0)
			k.wantAnyDenial(k.take(1))
			k.wantDenied(k.take(math.MaxInt64), 0, 0)
		}
	}},
	{"concurrent reservations, cancels and reloads admit what the largest quota allows", func(w *world) {
		const burst = 20
		for _, p := range []struct{ a, b rules.Quota }{
			{bucket(perSecond(10), burst), bucket(perSecond(11), burst)},
			{bucket(perSecond(10), burst), bucket(perSecond(10), burst/2)},
			{leaky(perSecond(10), burst, false), leaky(perSecond(11), burst, false)},
			{slidingLog(burst, 10*sec), slidingLog(burst, 9*sec)},
		} {
			k := w.keyNamed("limit", describeQuota(&p.a)+describeQuota(&p.b), p.a)
			k.ready(limiter.Take, limiter.Reserve, limiter.Return)
			quotas := [2]rules.Quota{p.a.WithDefaults(), p.b.WithDefaults()}
			var kept atomic.Int64
			start := k.now()
			together(func(g int) {
				for i := range w.config.rounds() / 2 {
					op := k.op
					op.Quota, op.Request = &quotas[(g+i)%2], limiter.Request{Kind: limiter.Reserve, N: int64(1 + i%3)}
					r, err := k.backend.Do(w.t.Context(), op)
					if err != nil {
						k.t.Error(err)
						return
					}
					switch {
					case g == 0 && i%10 == 0:
						w.sleep(ms)
					case r.Taken > 0 && (g+i)%3 > 0:
						op.Request = r.Return()
						if _, err := k.backend.Do(w.t.Context(), op); err != nil {
							k.t.Error(err)
						}
					default:
						kept.Add(r.Taken)
					}
				}
			})
			limit := burst + int64((k.now()-start)*11/sec) + 1
			if quotas[0].Algorithm.Windowed() {
				limit = burst
			}
			if got := kept.Load(); got > limit {
				w.Fatalf("%s and %s: %d were kept, of %d", describeQuota(&p.a), describeQuota(&p.b), got, limit)
			}
		}
	}},
}
