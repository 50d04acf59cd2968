package limitertest

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// returnCases are Returns under one quota and under several.
var returnCases = []namedCase{
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
	{"what is returned makes no state, and no room in another", func(w *world) {
		for k := range w.oneOfEach(5) {
			first := k.under(*k.quota, take(2))
			w.sleep(time.Hour)
			k.under(*k.quota, take(3))
			k.back(*k.quota, first) // it expired, or was earned, long ago
			k.has(*k.quota, 2)
		}
	}},
	{"what was earned since is not given back again", func(w *world) {
		q := bucket(perSecond(10), 100)
		k := w.key(q)
		first := k.under(q, take(100))
		w.sleep(sec)
		if r := k.under(q, take(10)); !r.Allowed {
			k.Fatalf("%s", describeResult(r))
		}
		k.back(q, first)
		if r := k.under(q, take(91)); r.Allowed {
			k.Fatalf("10 and 91 at one instant, of 100")
		}
		k.has(q, 90)
	}},
	{"what was earned since an earlier return is not given back again", func(w *world) {
		q := bucket(perSecond(10), 100)
		k := w.key(q)
		a, b := k.under(q, take(50)), k.under(q, take(50))
		k.back(q, a)
		w.sleep(4 * sec) // 40 of b's are earned
		if r := k.under(q, take(40)); !r.Allowed {
			k.Fatalf("%s", describeResult(r))
		}
		k.back(q, b)
		if r := k.under(q, take(61)); r.Allowed {
			k.Fatalf("40 and 61 at one instant, of 100")
		}
	}},
	{"takes that are returned in reverse order all come back", func(w *world) {
		for k := range w.oneOfEach(4) {
			var all []limiter.Result
			for range 4 {
				all = append(all, k.under(*k.quota, take(1)))
				w.sleep(us)
			}
			for _, r := range slices.Backward(all) {
				k.back(*k.quota, r)
				w.sleep(us)
			}
			k.has(*k.quota, 4)
		}
	}},
	{"a take that is returned in parts gets no other take back", func(w *world) {
		for _, q := range []rules.Quota{bucket(perSecond(1), 10), leaky(perSecond(1), 10, false)} {
			k := w.keyNamed("limit", describeQuota(&q), q)
			whole := k.under(q, take(10))
			part := whole.Return()
			part.N, part.Keep = 5, 5
			w.sleep(3 * sec)
			k.under(q, part)
			k.under(q, take(5))
			w.sleep(3 * sec)
			part.Keep = 0
			k.under(q, part) // it was earned
			k.has(q, 6)
		}
	}},
	{"what is returned at once is all there again, in whatever order", func(w *world) {
		for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}} {
			for _, q := range oneOfEach(12) {
				k := w.keyNamed("limit", describeQuota(&q)+string(rune('a'+order[0])), q)
				var all [4]limiter.Result
				for i := range all {
					all[i] = k.under(q, take(3))
				}
				for _, i := range order {
					k.back(q, all[i])
				}
				k.has(q, 12)
			}
		}
	}},
}
