package limitertest

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// family names a group of quotas that share a state. Quotas of different families have separate
// states of a key.
type family string

const warmUpFamily family = "warm-up"

func familyOf(q *rules.Quota) family {
	switch {
	case q.WarmUp > 0:
		return warmUpFamily
	case q.Algorithm == "", q.Algorithm == rules.GCRA:
		return family(rules.TokenBucket)
	}
	return family(q.Algorithm)
}

// admission is a take of a key under one quota.
type admission struct {
	used
	asked    time.Duration
	family   family
	undo     limiter.Op // the Return of these permits
	returned bool
}

// mix is a key under several quotas, with its admissions.
type mix struct {
	*rapid.T
	*modelKey
	quotas  []*rules.Quota
	keepAll bool // whether every quota asks after each step, so that the backend keeps all their states
	log     []*admission
}

func (m *mix) Fatalf(format string, args ...any) { m.T.Fatalf(format, args...) }
func (m *mix) Helper()                           { m.T.Helper() }

// testMixes checks one key under several quotas that ask alternately, with returns. In any window
// the key is admitted at most as much as the largest quota of each family allows. Each quota of a
// window alone admits at most its own limit. A reservation counts from the time at which it may be
// used. Returned permits do not count. Takes before a pending reservation are not returned: see
// isBeforePending.
//
// A quota with a window admits a denied request exactly when its RetryAfter has passed, and not a
// tick before. A penalty and peeks by other quotas do not change that. A bucket makes no such
// promise, since it earns at the rate of the quota that asked last.
func testMixes(t *testing.T, c *Config) {
	for _, v := range []variant{
		{"token bucket and gcra", func(t *rapid.T) rules.Quota {
			return drawBucket(rapid.SampledFrom([]rules.Algorithm{rules.TokenBucket, rules.GCRA}).Draw(t, "algorithm"), mixRates)(t)
		}},
		{"leaky_bucket", func(t *rapid.T) rules.Quota {
			q := drawBucket(rules.LeakyBucket, mixRates)(t)
			q.Shape = rapid.Bool().Draw(t, "shape")
			return q
		}},
		{"warm-up", func(t *rapid.T) rules.Quota {
			q := drawBucket(rules.TokenBucket, mixRates)(t)
			q.WarmUp = rapid.SampledFrom([]time.Duration{sec, 10 * sec}).Draw(t, "warm-up")
			return q
		}},
		{"fixed_window", drawMixWindow(rules.FixedWindow)},
		{"fixed_window, calendar", func(t *rapid.T) rules.Quota {
			return natural(rapid.Int64Range(1, 12).Draw(t, "limit"), rapid.SampledFrom([]rules.Calendar{
				rules.CalendarSecond, rules.CalendarMinute, rules.CalendarHour,
			}).Draw(t, "calendar"))
		}},
		{"sliding_log", drawMixWindow(rules.SlidingLog)},
		{"sliding_blocks", func(t *rapid.T) rules.Quota {
			q := drawMixWindow(rules.SlidingBlocks)(t)
			q.Blocks = rapid.SampledFrom([]int{2, 3, 6, 10}).Draw(t, "blocks")
			return q
		}},
		{"any", drawMixed},
	} {
		t.Run(v.name, func(t *testing.T) {
			check(t, c, func(rt *rapid.T) { runMix(t, rt, c, v.draw) })
		})
	}
}

var mixRates = []rules.Rate{perSecond(1), perSecond(3), perSecond(10), {N: 7, Per: time.Minute}, {N: 60, Per: time.Minute}, perSecond(1000)}

func drawMixWindow(a rules.Algorithm) func(*rapid.T) rules.Quota {
	return func(t *rapid.T) rules.Quota {
		q := drawWindow(a, rapid.IntRange(0, 3).Draw(t, "count denied") == 0)(t)
		q.Rate.Per = rapid.SampledFrom([]time.Duration{sec, 6 * sec, 7 * sec, time.Minute}).Draw(t, "span")
		return q
	}
}

func drawMixed(t *rapid.T) rules.Quota {
	algorithm := rapid.SampledFrom(rules.Algorithms).Draw(t, "algorithm")
	if algorithm.Windowed() {
		return drawMixWindow(algorithm)(t)
	}
	return drawBucket(algorithm, mixRates)(t)
}

func runMix(t *testing.T, rt *rapid.T, c *Config, draw func(*rapid.T) rules.Quota) {
	m := &mix{T: rt}
	for range rapid.IntRange(2, 4).Draw(rt, "quotas") {
		q := draw(rt).WithDefaults()
		if rapid.IntRange(0, 3).Draw(rt, "locks") == 0 {
			q.Penalty = rapid.SampledFrom([]time.Duration{ms, sec, 10 * sec}).Draw(rt, "penalty")
		}
		for _, kind := range []limiter.OpKind{limiter.Take, limiter.AtMost, limiter.Reserve, limiter.Return} {
			if !c.supports(&q, kind) {
				return
			}
		}
		m.quotas = append(m.quotas, &q)
	}
	m.modelKey = newWorldIn(t, rt, c).key(*m.quotas[0])
	m.keepAll = m.quotas[0].Algorithm.Windowed() && rapid.Bool().Draw(rt, "every quota asks")
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		m.step()
		for _, q := range m.quotas {
			if m.keepAll {
				m.askUnder(q, take(1))
			}
		}
	}
	byFamily := map[family][]*rules.Quota{}
	for _, q := range m.quotas {
		byFamily[familyOf(q)] = append(byFamily[familyOf(q)], q)
	}
	for f, quotas := range byFamily {
		m.checkFamily(f, quotas)
	}
	for _, q := range m.quotas {
		m.checkWindow(q)
	}
}

func (m *mix) step() {
	q := rapid.SampledFrom(m.quotas).Draw(m.T, "quota")
	if rapid.IntRange(0, 2).Draw(m.T, "time passes") == 0 {
		unit := q.Rate.Per
		if !q.Algorithm.Windowed() {
			unit /= time.Duration(q.Rate.N)
		}
		m.sleep(ceilTick(big.NewRat(rapid.Int64Range(0, 3*int64(unit)).Draw(m.T, "time"), 1), m.config.tick()))
	}
	if len(m.log) > 0 && rapid.IntRange(0, 3).Draw(m.T, "return") == 0 {
		if a := rapid.SampledFrom(m.log).Draw(m.T, "which take"); !a.returned && !m.isBeforePending(a) {
			a.returned = true
			m.world.do(a.undo)
		}
		return
	}
	if rapid.IntRange(0, 5).Draw(m.T, "others come") == 0 {
		m.askOthers(q)
		return
	}
	ask := limiter.Request{
		Kind: rapid.SampledFrom([]limiter.OpKind{limiter.Take, limiter.AtMost, limiter.Reserve}).Draw(m.T, "kind"),
		N:    rapid.Int64Range(1, max(q.Burst, 1)).Draw(m.T, "n"),
	}
	if ask.Kind == limiter.Reserve {
		ask.Within = time.Duration(rapid.Int64Range(0, int64(20*sec/m.config.tick())).Draw(m.T, "within")) * m.config.tick()
	}
	if r := m.askUnder(q, ask); r.RetryAfter > 0 && !m.config.full && q.Algorithm.Windowed() && rapid.Bool().Draw(m.T, "retry") {
		m.retry(q, ask, r)
	}
}

// askUnder asks under q, and logs the permits that were taken.
func (m *mix) askUnder(q *rules.Quota, ask limiter.Request) limiter.Result {
	op := m.op
	op.Quota, op.Request = q, ask
	r := m.world.do(op)
	if bad := impossible(q.Burst, ask, r); bad != "" {
		m.Fatalf("%s: %s: %s: %s", describeQuota(q), describeRequest(ask), bad, describeResult(r))
	}
	if r.Taken > 0 {
		op.Request = r.Return()
		m.log = append(m.log, &admission{used: used{m.now() + r.Delay, r.Taken, r.Delay > 0}, asked: m.now(), family: familyOf(q), undo: op})
	}
	return r
}

// retry asks again when the RetryAfter of a denial has passed. Before that, either other quotas
// peek, or q does a tick earlier.
func (m *mix) retry(q *rules.Quota, ask limiter.Request, denied limiter.Result) {
	due := m.now() + denied.RetryAfter
	if rapid.Bool().Draw(m.T, "others peek") {
		for range rapid.IntRange(1, 3).Draw(m.T, "peeks") {
			m.sleep(time.Duration(rapid.Int64Range(0, int64((due-m.now())/m.config.tick())).Draw(m.T, "until")) * m.config.tick())
			m.askUnder(rapid.SampledFrom(m.quotas).Draw(m.T, "peeker"), peek(1))
		}
	} else if ask.Kind == limiter.Take {
		m.sleep(denied.RetryAfter - m.config.tick())
		if early := m.askUnder(q, peek(ask.N)); early.Allowed {
			m.Fatalf("%s: %s passes a tick before the retry is due: %s, before it %s", describeQuota(q), describeRequest(ask), describeResult(early), describeResult(denied))
		}
	}
	m.sleep(due - m.now())
	if r := m.askUnder(q, ask); !r.Allowed {
		m.Fatalf("%s: %s: the retry on time was denied: %s, before it %s", describeQuota(q), describeRequest(ask), describeResult(r), describeResult(denied))
	}
}

// askOthers takes permits of other keys. They affect k only if a table is full.
func (k *modelKey) askOthers(q *rules.Quota) {
	k.Helper()
	t := k.failer.(*rapid.T)
	op := k.op
	op.Quota = q
	for range rapid.IntRange(1, 8).Draw(t, "others") {
		op.Key = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "another key of more than 27 bytes"}).Draw(t, "other")
		op.Request = take(rapid.Int64Range(1, max(q.Burst, 1)).Draw(t, "of others"))
		k.world.do(op)
	}
}

// isBeforePending reports whether a reservation made after a is still pending. A return of a would
// move that reservation up in the backend, while its caller still uses it at the promised time. A
// later take could then fall on the same time, which the bounds checked here do not allow for.
func (m *mix) isBeforePending(a *admission) bool {
	behind := false
	for _, b := range m.log {
		if behind && b.family == a.family && !b.returned && b.instant > m.now() {
			return true
		}
		behind = behind || b == a
	}
	return false
}

// checkFamily fails if any window admitted more than the family's largest quota allows.
func (m *mix) checkFamily(f family, quotas []*rules.Quota) {
	var log []used
	for _, a := range m.log {
		if a.family == f && !a.returned {
			log = append(log, a.used)
		}
	}
	byInstant(log)
	slack := m.config.tick() // reservations are due at whole ticks
	if f == warmUpFamily {
		slack = warmUpTolerance(slack)
	}
	burst, rate := largest(quotas)
	inAnyWindow(m, string(f), burst, rate, log, func(used) time.Duration { return slack })
}

// checkWindow fails if q counts in windows and admitted more than its own limit.
func (m *mix) checkWindow(q *rules.Quota) {
	if !q.Algorithm.Windowed() || q.Algorithm == rules.FixedWindow && q.Calendar == "" {
		return // its windows begin with the takes of other quotas, so their borders are not known here
	}
	var log []used
	for _, a := range m.log {
		if a.undo.Quota == q && !a.returned {
			log = append(log, a.used)
		}
	}
	withinBounds(m, q, m.config.tick(), log)
}

// largest returns the greatest burst and the greatest rate, per nanosecond, of some quotas of a
// family. A fixed window allows its limit twice around a border. Windows with different borders
// allow the sum, since asks may alternate just after each border. A block of sliding blocks leaves
// the window at once, so the limit holds for a span that is shorter by one block. A single block is
// a fixed window.
func largest(quotas []*rules.Quota) (burst int64, rate *big.Rat) {
	rate = new(big.Rat)
	fixed := map[[2]any]int64{}
	for _, q := range quotas {
		span := int64(q.Rate.Per)
		switch q.Algorithm {
		case rules.FixedWindow:
			borders := [2]any{q.Rate.Per, q.Calendar}
			fixed[borders] = max(fixed[borders], q.Burst)
			continue
		case rules.SlidingBlocks:
			span = max(span-(span-1)/int64(q.Blocks)-1, span/2)
		}
		burst = max(burst, q.Burst)
		rate = maxRat(rate, big.NewRat(q.Rate.N, span))
	}
	for borders, limit := range fixed {
		burst += 2 * limit
		rate.Add(rate, big.NewRat(limit, int64(borders[0].(time.Duration))))
	}
	return burst, rate
}
