package limitertest

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// The cases of this file hold a key under several quotas: those of instances that run
// different versions, of a reload, of another number of instances. In any window the key
// is admitted at most what the largest quota in force in it allows, and of quotas of
// different families (see familyOf) their sum.

// under asks for the key as one whose quota is q does.
func (k *key) under(q hotparam.Quota, ask limiter.Ask) limiter.Result {
	k.Helper()
	q = q.WithDefaults()
	op := k.op
	op.Quota, op.Ask = &q, ask
	return k.world.do(op)
}

// back returns what r took under q, as a Reservation's Cancel does.
func (k *key) back(q hotparam.Quota, r limiter.Result) {
	k.Helper()
	ask := r.Return()
	if got := k.under(q, ask); !got.Allowed || got.Taken != 0 {
		k.Fatalf("%s: %s", toldAsk(ask), toldResult(got))
	}
}

// has fails unless so many are left under q.
func (k *key) has(q hotparam.Quota, left int64) {
	k.Helper()
	if r := k.under(q, peek(0)); r.Remaining != left {
		k.Fatalf("%s at %v: %d left, want %d", told(&q), k.now()-epoch, r.Remaining, left)
	}
}

// fills reserves single permits under q until one is denied, and returns what was taken.
func (k *key) fills(q hotparam.Quota, within time.Duration) (log []used) {
	k.Helper()
	for range 10_000 {
		r := k.under(q, limiter.Ask{Kind: limiter.Reserve, N: 1, Within: within})
		if !r.Allowed {
			return log
		}
		log = append(log, used{at: k.now() + r.Delay, n: r.Taken, delayed: r.Delay > 0})
	}
	k.Fatalf("%s: 10,000 reservations within %v", told(&q), within)
	return nil
}

func warming(rate hotparam.Rate, burst int64, warmUp time.Duration) hotparam.Quota {
	return hotparam.Quota{Algorithm: hotparam.TokenBucket, Rate: rate, Burst: burst, WarmUp: warmUp}
}

func natural(n int64, c hotparam.Calendar) hotparam.Quota {
	q := window(n, hotparam.CalendarPeriods[c])
	q.Calendar = c
	return q
}

func perMinute(n int64) hotparam.Rate { return hotparam.Rate{N: n, Per: time.Minute} }

var quotaCases = []namedCase{
	{"two quotas of one family in turns admit what the larger one allows", func(w *world) {
		gcra := bucket(perMinute(12), 12)
		gcra.Algorithm = hotparam.GCRA
		for _, p := range []struct {
			a, b hotparam.Quota
			most int64
		}{
			{bucket(perMinute(10), 10), bucket(perMinute(12), 12), 12},
			{bucket(perMinute(10), 10), bucket(perMinute(10), 100), 100},
			{bucket(perMinute(10), 10), gcra, 12},
			{bucket(perSecond(1000), 5), bucket(perMinute(7), 9), 9},
			{leaky(perMinute(10), 10, false), leaky(perMinute(12), 12, false), 12},
			{leaky(perMinute(10), 10, false), leaky(perMinute(10), 12, true), 12},
			{slidingLog(10, time.Minute), slidingLog(12, time.Minute), 12},
			{slidingLog(10, time.Minute), slidingLog(12, sec), 12},
			{slidingLog(12, time.Hour), slidingLog(10, sec), 12},
			{window(10, time.Minute), window(12, time.Minute), 12},
			{window(10, time.Minute), window(12, time.Hour), 12},
			{natural(10, hotparam.CalendarMinute), natural(12, hotparam.CalendarHour), 12},
			{natural(10, hotparam.CalendarMinute), window(12, time.Minute), 12},
			{slidingBlocks(10, time.Minute, 6), slidingBlocks(12, time.Minute, 10), 12},
			{slidingBlocks(10, time.Minute, 6), slidingBlocks(12, time.Hour, 7), 12},
		} {
			k := w.named("limit", told(&p.a)+told(&p.b), p.a)
			k.inTurns(p.a, p.b, p.most, p.most)
		}
	}},
	{"two quotas that warm up, in turns, admit what the larger one allows", func(w *world) {
		a, b := warming(perMinute(10), 10, 10*sec), warming(perMinute(12), 12, 20*sec)
		w.key(a).inTurns(a, b, 1, 12)
	}},
	{"quotas of two families in turns admit their sum", func(w *world) {
		for _, p := range []struct{ a, b hotparam.Quota }{
			{bucket(perMinute(10), 10), slidingLog(12, time.Minute)},
			{bucket(perMinute(10), 10), leaky(perMinute(12), 12, false)},
			{bucket(perMinute(10), 10), window(12, time.Minute)},
			{slidingLog(10, time.Minute), window(12, time.Minute)},
			{slidingBlocks(10, time.Minute, 6), slidingLog(12, time.Minute)},
			{leaky(perMinute(10), 10, false), slidingBlocks(12, time.Minute, 6)},
		} {
			k := w.named("limit", told(&p.a)+told(&p.b), p.a)
			k.inTurns(p.a, p.b, 22, 22)
		}
	}},
	{"a quota that is made anew for each call is one quota", func(w *world) {
		for _, q := range oneOfEach(5) {
			k := w.named("limit", told(&q), q)
			k.inTurns(q, q, 5, 5) // under makes a copy each time
		}
	}},
	{"a longer window forgets nothing while a shorter one asks", func(w *world) {
		for _, p := range []struct{ long, short hotparam.Quota }{
			{slidingLog(10, time.Minute), slidingLog(5, sec)},
			{window(10, time.Minute), window(5, sec)},
			{slidingBlocks(10, time.Minute, 6), slidingBlocks(5, sec, 4)},
			{natural(10, hotparam.CalendarHour), natural(5, hotparam.CalendarSecond)},
		} {
			k := w.named("limit", told(&p.long)+told(&p.short), p.long)
			start := k.now()
			for range 12 {
				k.under(p.long, take(1))
			}
			for k.now() < start+30*sec {
				w.sleep(3 * sec)
				k.under(p.short, take(0))
			}
			if r := k.under(p.long, take(1)); r.Allowed {
				k.Fatalf("%s beside %s: an eleventh within %v: %s", told(&p.long), told(&p.short), k.now()-start, toldResult(r))
			}
		}
	}},
	{"windows of two lengths in turns pile nothing up", func(w *world) {
		for _, p := range []struct{ a, b hotparam.Quota }{
			{slidingLog(10, time.Minute), slidingLog(10, 7*sec)},
			{window(10, time.Minute), window(10, 7*sec)},
			{slidingBlocks(10, time.Minute, 6), slidingBlocks(10, time.Minute, 7)},
			{natural(10, hotparam.CalendarMinute), natural(10, hotparam.CalendarSecond)},
		} {
			k := w.named("limit", told(&p.a)+told(&p.b), p.a)
			for range 12 {
				k.under(p.a, take(1))
			}
			for range 70 { // more than two windows of a minute
				w.sleep(2 * sec)
				k.under(p.b, peek(1))
				k.under(p.a, peek(1))
			}
			k.has(p.a, 10)
			k.has(p.b, 10)
		}
	}},
	{"buckets of two rates in turns pile nothing up", func(w *world) {
		slow, fast := bucket(perMinute(7), 10), bucket(perSecond(1_999), 10)
		k := w.key(slow)
		for range 12 {
			k.under(slow, take(1))
		}
		for range 1000 {
			k.under(fast, peek(1))
			k.under(slow, peek(1))
		}
		w.sleep(10*time.Minute/7 + sec)
		k.has(slow, 10)
	}},
	{"another algorithm and back forgets nothing", func(w *world) {
		quotas := append(oneOfEach(5), warming(perSecond(1), 5, 10*sec))
		for i, a := range quotas {
			for j, b := range quotas {
				if i == j || familyOf(&a) == familyOf(&b) {
					continue
				}
				k := w.named("limit", told(&a)+told(&b), a)
				for range 10 {
					k.under(a, take(1))
				}
				for range 10 {
					k.under(b, take(1))
				}
				for _, q := range []hotparam.Quota{a, b, a} {
					if r := k.under(q, take(1)); r.Allowed {
						k.Fatalf("%s and %s in turns: one more of %s", told(&a), told(&b), told(&q))
					}
				}
			}
		}
	}},
	{"reservations outlive a reload that raises the rate", func(w *world) {
		for _, p := range []struct{ a, b hotparam.Quota }{
			{bucket(perSecond(10), 1), bucket(perSecond(11), 1)},
			{bucket(perSecond(10), 10), bucket(perSecond(11), 11)},
			{leaky(perSecond(10), 50, true), leaky(perSecond(11), 55, true)},
			{leaky(perSecond(10), 10, false), leaky(perSecond(11), 11, false)},
		} {
			k := w.named("limit", told(&p.a), p.a)
			log := k.fills(p.a, 5*sec)
			log = append(log, k.fills(p.b, 5*sec)...)
			var sum int64
			for _, u := range log {
				sum += u.n
			}
			if most := p.b.Burst + 5*p.b.Rate.N; sum > most {
				k.Fatalf("%s, then %s: %d within 5s, want at most %d", told(&p.a), told(&p.b), sum, most)
			}
		}
	}},
	{"reservations outlive another number of instances", func(w *world) {
		for _, p := range []struct{ a, b hotparam.Quota }{
			{bucket(perSecond(10), 10), bucket(perSecond(5), 5)},
			{leaky(perSecond(10), 50, true), leaky(perSecond(5), 25, true)},
			{leaky(perSecond(10), 10, false), leaky(perSecond(5), 5, false)},
			{slidingLog(10, sec), slidingLog(5, sec)},
			{window(10, sec), window(5, sec)},
			{slidingBlocks(10, sec, 10), slidingBlocks(5, sec, 10)},
		} {
			k := w.named("limit", told(&p.a), p.a)
			k.fills(p.a, 5*sec)
			if more := k.fills(p.b, 5*sec); len(more) > 0 {
				k.Fatalf("%s, then %s: %d more within 5s", told(&p.a), told(&p.b), len(more))
			}
		}
	}},
	{"what is owed is owed under another quota, too", func(w *world) {
		a, b := bucket(perSecond(1), 60), bucket(perSecond(1), 2)
		k := w.key(a)
		k.under(a, limiter.Ask{Kind: limiter.Charge, N: 100})
		k.has(b, 0)
		if r := k.under(b, take(1)); r.Allowed || r.RetryAfter != 99*sec {
			k.Fatalf("of 2 tokens 100 are missing: %s", toldResult(r))
		}
		if r := k.under(a, take(1)); r.Allowed || r.RetryAfter != 41*sec {
			k.Fatalf("of 60 tokens 100 are missing: %s", toldResult(r))
		}
	}},
	{"a cost is charged to a bucket that is cold", func(w *world) {
		for _, q := range []hotparam.Quota{
			warming(perMinute(1), 1, 10*time.Minute),
			warming(perSecond(10), 1, 10*sec),
			warming(perSecond(1000), 5, time.Minute),
			{Algorithm: hotparam.TokenBucket, Rate: perSecond(1), Burst: 1, WarmUp: time.Hour, ColdFactor: 1000},
		} {
			for _, cost := range []int64{1, 20, 1 << 20} {
				k := w.named("limit", told(&q)+time.Duration(cost).String(), q)
				served := int64(0)
				for range 1000 {
					if k.under(q, peek(1)).Allowed {
						served++
						k.under(q, limiter.Ask{Kind: limiter.Charge, N: cost})
					}
				}
				if served < 1 || served > q.Burst {
					k.Fatalf("%s: served %d at once, each charged %d", told(&q), served, cost)
				}
			}
		}
	}},
	{"a cost warms a bucket up as a take does", func(w *world) {
		q := warming(perSecond(1), 1, 10*sec)
		taken, charged := w.named("limit", "taken", q), w.named("limit", "charged", q)
		for range 12 {
			taken.under(q, take(1))
			charged.under(q, peek(1))
			charged.under(q, limiter.Ask{Kind: limiter.Charge, N: 1})
			a, b := taken.under(q, peek(1)), charged.under(q, peek(1))
			if off := a.RetryAfter - b.RetryAfter; off > 3*us || off < -3*us {
				w.Fatalf("%s: a take is followed by one after %v, a charge after %v", told(&q), a.RetryAfter, b.RetryAfter)
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
				w.Fatalf("%s: charge %d is paid after %v", told(&q), i, r.RetryAfter)
			}
			k.under(q, limiter.Ask{Kind: limiter.Charge, N: 20})
		}
		w.sleep(k.under(q, peek(1)).RetryAfter)
		k.under(q, take(1))
		if r := k.under(q, peek(1)); r.RetryAfter > time.Minute+sec {
			w.Fatalf("%s: it is not warm after 40 charges: %s", told(&q), toldResult(r))
		}
	}},
	{"concurrent reservations, cancels and reloads admit what the largest quota allows", func(w *world) {
		const burst = 20
		for _, p := range []struct{ a, b hotparam.Quota }{
			{bucket(perSecond(10), burst), bucket(perSecond(11), burst)},
			{bucket(perSecond(10), burst), bucket(perSecond(10), burst/2)},
			{leaky(perSecond(10), burst, false), leaky(perSecond(11), burst, false)},
			{slidingLog(burst, 10*sec), slidingLog(burst, 9*sec)},
		} {
			k := w.named("limit", told(&p.a)+told(&p.b), p.a)
			k.ready(limiter.Take, limiter.Reserve, limiter.Return)
			quotas := [2]hotparam.Quota{p.a.WithDefaults(), p.b.WithDefaults()}
			var kept atomic.Int64
			start := k.now()
			together(func(g int) {
				for i := range w.config.rounds() / 2 {
					op := k.op
					op.Quota, op.Ask = &quotas[(g+i)%2], limiter.Ask{Kind: limiter.Reserve, N: int64(1 + i%3)}
					r, err := k.backend.Do(w.t.Context(), op)
					if err != nil {
						k.t.Error(err)
						return
					}
					switch {
					case g == 0 && i%10 == 0:
						w.sleep(ms)
					case r.Taken > 0 && (g+i)%3 > 0:
						op.Ask = r.Return()
						if _, err := k.backend.Do(w.t.Context(), op); err != nil {
							k.t.Error(err)
						}
					default:
						kept.Add(r.Taken)
					}
				}
			})
			most := burst + int64((k.now()-start)*11/sec) + 1
			if quotas[0].Algorithm.Windowed() {
				most = burst
			}
			if got := kept.Load(); got > most {
				w.Fatalf("%s and %s: %d were kept, of %d", told(&p.a), told(&p.b), got, most)
			}
		}
	}},
}

// inTurns asks for a permit under one quota and the other, 500 times each at one instant.
func (k *key) inTurns(a, b hotparam.Quota, least, most int64) {
	k.Helper()
	var sum int64
	for range 500 {
		for _, q := range []hotparam.Quota{a, b} {
			sum += k.under(q, take(1)).Taken
		}
	}
	if sum < least || sum > most {
		k.Fatalf("%s and %s in turns: %d admitted at one instant, want %d to %d", told(&a), told(&b), sum, least, most)
	}
}
