package limitertest

import (
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// The cases of this file put a key under several quotas: those of instances of different
// versions, of a reload, or of another number of instances. In any window the key is admitted at
// most as much as the largest quota in force allows, or the sum over families (see familyOf).

// under asks under q.
func (k *modelKey) under(q rules.Quota, ask limiter.Request) limiter.Result {
	k.Helper()
	q = q.WithDefaults()
	op := k.op
	op.Quota, op.Request = &q, ask
	return k.world.do(op)
}

// back returns the permits that r took under q, as a Reservation's Cancel does.
func (k *modelKey) back(q rules.Quota, r limiter.Result) {
	k.Helper()
	ask := r.Return()
	if got := k.under(q, ask); !got.Allowed || got.Taken != 0 {
		k.Fatalf("%s: %s", describeRequest(ask), describeResult(got))
	}
}

// has fails unless left permits remain under q.
func (k *modelKey) has(q rules.Quota, left int64) {
	k.Helper()
	if r := k.under(q, peek(0)); r.Remaining != left {
		k.Fatalf("%s at %v: %d left, want %d", describeQuota(&q), k.now()-epoch, r.Remaining, left)
	}
}

func natural(n int64, c rules.Calendar) rules.Quota {
	q := window(n, rules.CalendarPeriods[c])
	q.Calendar = c
	return q
}

func perMinute(n int64) rules.Rate { return rules.Rate{N: n, Per: time.Minute} }

var quotaCases = []namedCase{
	{"two quotas of one family in turns admit what the larger one allows", func(w *world) {
		gcra := bucket(perMinute(12), 12)
		gcra.Algorithm = rules.GCRA
		for _, p := range []struct {
			a, b rules.Quota
			want int64
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
			{natural(10, rules.CalendarMinute), natural(12, rules.CalendarHour), 12},
			{natural(10, rules.CalendarMinute), window(12, time.Minute), 12},
			{slidingBlocks(10, time.Minute, 6), slidingBlocks(12, time.Minute, 10), 12},
			{slidingBlocks(10, time.Minute, 6), slidingBlocks(12, time.Hour, 7), 12},
		} {
			k := w.keyNamed("limit", describeQuota(&p.a)+describeQuota(&p.b), p.a)
			k.inTurns(p.a, p.b, p.want, p.want)
		}
	}},
	{"a short window that asks seldom beside a long one is not set anew each time", func(w *world) {
		for _, p := range []struct{ long, short rules.Quota }{
			{slidingLog(100, time.Hour), slidingLog(5, sec)},
			{slidingBlocks(100, time.Hour, 6), slidingBlocks(5, sec, 4)},
		} {
			k := w.keyNamed("limit", describeQuota(&p.long)+describeQuota(&p.short), p.long)
			k.under(p.long, take(1))
			k.under(p.short, take(5))
			w.sleep(11 * time.Minute) // until no slot from before its first ask can hold a take of its window
			for range 5 {
				k.under(p.short, take(1))
				w.sleep(1500 * ms)
				k.under(p.long, take(1))
				w.sleep(1500 * ms)
				if r := k.under(p.short, take(5)); !r.Allowed {
					k.Fatalf("%s beside %s: denied after 1.5 s without a request: %s", describeQuota(&p.short), describeQuota(&p.long), describeResult(r))
				}
				w.sleep(sec)
			}
		}
	}},
	{"what is reserved within a block that has begun counts under a new quota", func(w *world) {
		a, b, c := slidingBlocks(7, sec, 10), slidingBlocks(1, 3*sec, 2), slidingBlocks(2, sec, 2)
		k := w.key(a)
		k.under(a, take(7))
		k.under(b, peek(1))
		k.under(a, limiter.Request{Kind: limiter.Reserve, N: 7, Within: 3 * sec}) // used at 1 s
		k.under(c, peek(1))
		w.setClock(sec)
		if r := k.under(c, take(1)); r.Allowed {
			k.Fatalf("an eighth at one instant: %s", describeResult(r))
		}
	}},
	{"what a quota never counted is not given back to it", func(w *world) {
		short, long := natural(2, rules.CalendarSecond), natural(2, rules.CalendarMinute)
		k := w.key(short)
		early := k.under(short, take(2))
		w.setClock(sec)
		k.under(short, take(1))
		k.under(long, take(1))
		k.back(short, early)
		k.under(long, take(1))
		if r := k.under(long, take(1)); r.Allowed {
			k.Fatalf("a third of two in a minute: %s", describeResult(r))
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
	{"what is returned goes to where it was taken, whatever the algorithm is by then", func(w *world) {
		quotas := oneOfEach(5)
		for _, a := range quotas {
			for _, b := range quotas {
				if familyOf(&a) == familyOf(&b) {
					continue
				}
				k := w.keyNamed("limit", describeQuota(&a)+describeQuota(&b), a)
				first := k.under(a, take(4))
				k.under(b, take(3))
				k.back(a, first)
				k.has(b, 2)
				k.has(a, 5)
				k.has(b, 2)
			}
		}
	}},
	{"what is returned is there under the quota that holds by then", func(w *world) {
		for _, p := range []struct{ a, b rules.Quota }{
			{bucket(perSecond(10), 5), bucket(perSecond(7), 8)},
			{leaky(perSecond(10), 5, false), leaky(perSecond(7), 8, false)},
			{slidingLog(5, 10*sec), slidingLog(8, 12*sec)},
			{window(5, 10*sec), window(8, 12*sec)},
			{slidingBlocks(5, 10*sec, 10), slidingBlocks(8, 12*sec, 10)},
		} {
			k := w.keyNamed("limit", describeQuota(&p.a), p.a)
			first := k.under(p.a, take(4))
			second := k.under(p.b, take(3))
			k.has(p.b, 1)
			k.back(p.a, first)
			k.has(p.b, 5)
			k.back(p.b, second)
			k.has(p.b, 8)
			k.has(p.a, 5)
		}
	}},
}

// inTurns asks for a permit under a and b alternately, 500 times each at one instant.
func (k *modelKey) inTurns(a, b rules.Quota, least, greatest int64) {
	k.Helper()
	var sum int64
	for range 500 {
		for _, q := range []rules.Quota{a, b} {
			sum += k.under(q, take(1)).Taken
		}
	}
	if sum < least || sum > greatest {
		k.Fatalf("%s and %s in turns: %d admitted at one instant, want %d to %d", describeQuota(&a), describeQuota(&b), sum, least, greatest)
	}
}
