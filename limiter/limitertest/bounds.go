package limitertest

import (
	"cmp"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// used is a number of permits that may be used at an instant.
type used struct {
	instant time.Duration
	n       int64
	delayed bool // whether instant was rounded up to the next whole tick
}

// testBounds checks the promises of each algorithm about any window and about a retry. It does so
// for all quotas, including quotas whose permits return between two ticks.
func testBounds(t *testing.T, c *Config) {
	quotas := []variant{
		{"token_bucket", drawBucket(rules.TokenBucket, oddRates)},
		{"gcra", drawBucket(rules.GCRA, oddRates)},
		{"leaky_bucket, policing", drawBucket(rules.LeakyBucket, oddRates)},
		{"leaky_bucket, shaping", func(t *rapid.T) rules.Quota {
			q := drawBucket(rules.LeakyBucket, oddRates)(t)
			q.Shape = true
			return q
		}},
		{"token_bucket that warms up", drawWarmUp},
		{"sliding_blocks of odd lengths", func(t *rapid.T) rules.Quota {
			q := drawBlocks(false)(t)
			q.Blocks = rapid.SampledFrom([]int{7, 9, 13}).Draw(t, "blocks")
			return q
		}},
		{"any", drawAny},
	}
	for _, v := range quotas {
		t.Run(v.name, func(t *testing.T) {
			check(t, c, func(rt *rapid.T) {
				q := v.draw(rt).WithDefaults()
				known := slices.DeleteFunc(c.kinds(&q), func(k limiter.OpKind) bool {
					return k != limiter.Take && k != limiter.AtMost && k != limiter.Reserve
				})
				if len(known) == 0 {
					return
				}
				k := newWorldIn(t, rt, c).key(q)
				k.loose = true
				s := newSchedule(rt, c, k.quota, known)
				var log []used
				for range s.askCount() {
					k.sleep(s.pause())
					ask := s.drawAsk()
					ask.Keep = 0
					log = append(log, k.retried(s, ask)...)
				}
				withinBounds(rt, k.quota, s.tick, log)
			})
		})
	}
}

// retried asks and, if denied, often asks again as soon as that can pass. It returns the permits
// that were taken.
func (k *modelKey) retried(s schedule, ask limiter.Request) []used {
	r := k.askBackend(ask)
	if r.RetryAfter > 0 && rapid.Bool().Draw(s.T, "retry") {
		k.sleep(r.RetryAfter - s.tick)
		if k.config.supports(s.q, limiter.Peek) && ask.Kind == limiter.Take && s.q.WarmUp == 0 {
			if early := k.askBackend(limiter.Request{Kind: limiter.Peek, N: ask.N}); early.Allowed {
				s.Fatalf("%s: %s passes a tick before the retry is due: %s", describeQuota(s.q), describeRequest(ask), describeResult(early))
			}
		}
		k.sleep(s.tick)
		denied := r
		if r = k.askBackend(ask); !r.Allowed {
			s.Fatalf("%s: %s: the retry on time was denied: %s, before it %s", describeQuota(s.q), describeRequest(ask), describeResult(r), describeResult(denied))
		}
	}
	if r.Taken == 0 {
		return nil
	}
	return []used{{k.now() + r.Delay, r.Taken, r.Delay > 0}}
}

// withinBounds fails if an algorithm admitted more than it promises.
func withinBounds(t failer, q *rules.Quota, tick time.Duration, log []used) {
	t.Helper()
	byInstant(log)
	switch {
	case q.Shape:
		inLine(t, q, tick, log)
	case q.Algorithm == rules.FixedWindow:
		inFixedWindows(t, q, log)
	case q.Algorithm == rules.SlidingLog:
		inSpans(t, q, log, q.Rate.Per-tick)
	case q.Algorithm == rules.SlidingBlocks:
		inSpans(t, q, log, time.Duration(q.Blocks-1)*ceilTo(q.Rate.Per, int64(q.Blocks), tick))
	default:
		inAnyWindow(t, describeQuota(q), q.Burst, big.NewRat(q.Rate.N, int64(q.Rate.Per)), log, func(first used) time.Duration {
			switch {
			case q.WarmUp > 0:
				return warmUpTolerance(tick)
			case first.delayed:
				return tick
			}
			return 0
		})
	}
}

func byInstant(log []used) {
	slices.SortStableFunc(log, func(a, b used) int { return cmp.Compare(a.instant, b.instant) })
}

// inAnyWindow checks that any window w admits at most burst + rate × w, where rate is per
// nanosecond. slack returns the time by which a window from a use on may count as longer.
func inAnyWindow(t failer, what string, burst int64, rate *big.Rat, log []used, slack func(first used) time.Duration) {
	t.Helper()
	for i := range log {
		sum, longer := int64(0), slack(log[i])
		for _, u := range log[i:] {
			sum += u.n
			if w := u.instant - log[i].instant; !earns(burst, rate, sum, w+longer) {
				t.Fatalf("%s: %d admitted in a window of %v from %v, want at most %d and %s/s: %v", what, sum, w, log[i].instant-epoch,
					burst, new(big.Rat).Mul(rate, big.NewRat(int64(sec), 1)).FloatString(3), log)
			}
		}
	}
}

// earns reports whether n permits in a window of w are at most burst + rate × w.
func earns(burst int64, rate *big.Rat, n int64, w time.Duration) bool {
	limit := new(big.Rat).Mul(rate, big.NewRat(int64(w), 1))
	return big.NewRat(n, 1).Cmp(limit.Add(limit, big.NewRat(burst, 1))) <= 0
}

// quotaEarns is like earns, for the burst and the rate of a quota.
func quotaEarns(q *rules.Quota, n int64, w time.Duration) bool {
	return earns(q.Burst, big.NewRat(q.Rate.N, int64(q.Rate.Per)), n, w)
}

// inLine checks that each permit leaves only after those before it.
func inLine(t failer, q *rules.Quota, tick time.Duration, log []used) {
	for i := 1; i < len(log); i++ {
		taken := big.NewRat(int64(q.Rate.Per), q.Rate.N)
		taken.Mul(taken, big.NewRat(log[i-1].n, 1))
		if gap := log[i].instant - log[i-1].instant; big.NewRat(int64(gap+tick), 1).Cmp(taken) < 0 {
			t.Fatalf("%s: what was admitted for %v leaves %v after %d others", describeQuota(q), log[i].instant-epoch, gap, log[i-1].n)
		}
	}
}

// inFixedWindows checks that no window holds more than the limit. A window begins with its first
// permit or with its period.
func inFixedWindows(t failer, q *rules.Quota, log []used) {
	windows := newIdealWindows(q)
	var open fixedWindow
	for _, u := range log {
		if u.instant >= open.end {
			open = windows.window(u.instant)
		}
		if open.n += u.n; open.n > q.Rate.N {
			t.Fatalf("%s: %d admitted in the window from %v", describeQuota(q), open.n, open.begin-epoch)
		}
	}
}

// inSpans checks that no span, its ends included, holds more than the limit.
func inSpans(t failer, q *rules.Quota, log []used, span time.Duration) {
	for i := range log {
		var sum int64
		for _, u := range log[i:] {
			if u.instant-log[i].instant > span {
				break
			}
			if sum += u.n; sum > q.Rate.N {
				t.Fatalf("%s: %d admitted within %v from %v", describeQuota(q), sum, u.instant-log[i].instant, log[i].instant-epoch)
			}
		}
	}
}

// testCharges checks requests that pass while there is a permit and are charged afterwards, each
// less than may be owed. In any window they cost at most burst + rate × w, not counting the last
// one.
func testCharges(t *testing.T, c *Config) {
	check(t, c, func(rt *rapid.T) {
		algorithm := rapid.SampledFrom([]rules.Algorithm{rules.TokenBucket, rules.GCRA, rules.LeakyBucket}).Draw(rt, "algorithm")
		q := drawBucket(algorithm, slices.Concat(oddRates, evenRates))(rt).WithDefaults()
		if !c.supports(&q, limiter.Peek) || !c.supports(&q, limiter.Charge) {
			return
		}
		k := newWorldIn(t, rt, c).key(q)
		s := newSchedule(rt, c, k.quota, nil)
		var log []used
		for range s.askCount() {
			k.sleep(s.pause())
			r := k.askBackend(peek(1))
			if r.RetryAfter > 0 && rapid.Bool().Draw(rt, "retry") {
				k.sleep(r.RetryAfter)
				if r = k.askBackend(peek(1)); !r.Allowed {
					rt.Fatalf("%s: the retry on time was denied: %s", describeQuota(&q), describeResult(r))
				}
			}
			if r.Allowed {
				n := rapid.Int64Range(0, q.Burst).Draw(rt, "cost")
				k.askBackend(limiter.Request{Kind: limiter.Charge, N: n})
				log = append(log, used{instant: k.now(), n: n})
			}
		}
		for i := range log {
			var sum int64
			for _, u := range log[i:] {
				if w := u.instant - log[i].instant; !quotaEarns(&q, sum, w) {
					rt.Fatalf("%s: charged %d in a window of %v from %v, and let in another", describeQuota(&q), sum, w, log[i].instant-epoch)
				}
				sum += u.n
			}
		}
	})
}

// testClockBounds checks that a clock that jumps back and forth within a minute earns nothing
// twice, and that a denial ends.
func testClockBounds(t *testing.T, c *Config) {
	check(t, c, func(rt *rapid.T) {
		q := rapid.SampledFrom([]func(*rapid.T) rules.Quota{drawAny, drawAny, drawAny, drawWarmUp}).Draw(rt, "of")(rt)
		if rate := rapid.SampledFrom(append([]rules.Rate{q.Rate}, oddRates...)).Draw(rt, "odd"); !q.Algorithm.Windowed() && q.WarmUp == 0 {
			q.Rate = rate
		}
		if c.full {
			q = rapid.SampledFrom(fullQuotas).Draw(rt, "full").draw(rt)
		}
		q.CountDenied = false
		q = q.WithDefaults()
		if !c.supports(&q, limiter.Take) {
			return
		}
		w := newWorldIn(t, rt, c)
		k := w.key(q)
		s := newSchedule(rt, c, k.quota, []limiter.OpKind{limiter.Take})
		latest, sum := w.now(), int64(0)
		for range s.askCount() {
			back := time.Duration(rapid.Int64Range(0, int64(time.Minute/s.tick)).Draw(rt, "back")) * s.tick
			w.clock.Store(int64(max(epoch, latest+s.pause()-back)))
			if c.full && rapid.Bool().Draw(rt, "others come") {
				k.askOthers(k.quota)
			}
			ask := limiter.Request{N: s.n()}
			r := k.askBackend(ask)
			if r.RetryAfter > 0 && !c.full && rapid.Bool().Draw(rt, "retry") {
				w.sleep(r.RetryAfter)
				denied := r
				if r = k.askBackend(ask); !r.Allowed {
					rt.Fatalf("%s: %s: the retry on time was denied: %s, before it %s", describeQuota(&q), describeRequest(ask), describeResult(r), describeResult(denied))
				}
			}
			latest = max(latest, w.now())
			limit := mostIn(&q, s.tick, latest)
			if c.full && q.Algorithm == rules.FixedWindow && q.Calendar == "" {
				limit += q.Rate.N // a key that was evicted may begin with the window of another
			}
			if sum += r.Taken; sum > limit {
				rt.Fatalf("%s: %d admitted in %v", describeQuota(&q), sum, latest-epoch)
			}
		}
	})
}

// mostIn returns the most permits that may be admitted from the epoch up to and including an
// instant.
func mostIn(q *rules.Quota, tick, to time.Duration) int64 {
	span := to - epoch
	switch {
	case q.Calendar != "":
		windows, all := newIdealWindows(q), int64(0)
		for start := epoch; start <= to; start = windows.window(start).end {
			if all += q.Rate.N; all > 1_000_000 {
				break // more than any schedule takes
			}
		}
		return all
	case q.Algorithm == rules.SlidingBlocks:
		block := ceilTo(q.Rate.Per, int64(q.Blocks), tick)
		touched := int64(to/block-epoch/block) + 1
		return q.Rate.N * ((touched + int64(q.Blocks) - 1) / int64(q.Blocks))
	case q.Algorithm.Windowed():
		return q.Rate.N * (int64(span/q.Rate.Per) + 1)
	}
	if q.WarmUp > 0 {
		span += warmUpTolerance(tick)
	}
	earned := big.NewRat(q.Rate.N, int64(q.Rate.Per))
	return q.Burst + floor(earned.Mul(earned, big.NewRat(int64(span), 1)))
}
