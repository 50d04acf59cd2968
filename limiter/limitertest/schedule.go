package limitertest

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// schedule draws the asks of one run, and the pauses between them.
type schedule struct {
	*rapid.T
	q     *rules.Quota
	kinds []limiter.OpKind
	tick  time.Duration
	unit  time.Duration // time in which the quota earns a permit
}

func newSchedule(t *rapid.T, c *Config, q *rules.Quota, known []limiter.OpKind) schedule {
	s := schedule{T: t, q: q, kinds: known, tick: c.tick()}
	switch {
	case q.Burst == rules.Unlimited:
		s.unit = sec
	case q.Algorithm == rules.SlidingBlocks:
		s.unit = q.Rate.Per / time.Duration(q.Blocks)
	case q.Algorithm.Windowed():
		s.unit = q.Rate.Per
	default:
		s.unit = q.Rate.Per / time.Duration(q.Rate.N)
	}
	return s
}

func (s schedule) askCount() int { return rapid.IntRange(1, 40).Draw(s.T, "asks") }

// pause returns the time to the next ask, in whole ticks. It is often none, and often close to an
// instant at which a permit is earned.
func (s schedule) pause() time.Duration {
	units := time.Duration(rapid.Int64Range(0, 3).Draw(s.T, "units"))
	off := time.Duration(rapid.Int64Range(-1, 1).Draw(s.T, "off"))
	far := time.Duration(rapid.Int64Range(0, max(2*s.q.Burst, 2)*int64(s.unit/s.tick)).Draw(s.T, "far"))
	var pause time.Duration
	switch rapid.IntRange(0, 7).Draw(s.T, "pause") {
	case 0, 1, 2:
	case 3, 4:
		pause = units*(s.unit/s.tick) + off
	case 5, 6:
		pause = far / 4
	default:
		pause = far
	}
	return max(0, pause) * s.tick
}

func (s schedule) n() int64 {
	return rapid.OneOf(rapid.Just[int64](1), rapid.Int64Range(-1, max(s.q.Burst, 3)+1)).Draw(s.T, "n")
}

func (s schedule) drawAsk() limiter.Request {
	ask := limiter.Request{Kind: rapid.SampledFrom(s.kinds).Draw(s.T, "kind"), N: s.n()}
	switch ask.Kind {
	case limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve:
		ask.Keep = max(0, rapid.Int64Range(-6, max(s.q.Burst, 3)).Draw(s.T, "keep"))
	case limiter.Charge:
		if rapid.IntRange(0, 2).Draw(s.T, "charges much") == 0 {
			ask.N *= 4
		}
	}
	if ask.Kind == limiter.Reserve {
		ask.Within = s.within()
	}
	return ask
}

// within returns a wait that is not longer than a bucket may owe.
func (s schedule) within() time.Duration {
	longest := max(s.unit*time.Duration(max(1, s.q.Burst)), time.Minute)
	if s.q.Algorithm.Windowed() {
		longest = 3 * s.q.Rate.Per
	}
	return time.Duration(rapid.Int64Range(-1, int64(longest/s.tick)).Draw(s.T, "within")) * s.tick
}

// check runs a property on random schedules, as many as the backend has time for.
func check(t *testing.T, c *Config, property func(rt *rapid.T)) {
	runs, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; c.Schedules > 0 && runs > c.Schedules && !failed {
			return
		}
		passed := failed
		failed = true // until it has passed; rapid runs a failed one again to make it smaller
		property(rt)
		failed = passed
	})
}

// testModel checks that every field of every Result equals the model's, whatever is asked and
// when. After a denial it often asks the same again when its RetryAfter has passed, and a tick
// before.
func testModel(t *testing.T, c *Config) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			check(t, c, func(rt *rapid.T) {
				q, known, ok := v.drawSupported(rt, c)
				if !ok {
					return
				}
				w := newWorldIn(t, rt, c)
				w.sleep(time.Duration(rapid.Int64Range(0, int64(3*365*day/c.tick())).Draw(rt, "start")) * c.tick())
				r := keyRun{schedule: newSchedule(rt, c, &q, known), modelKey: w.key(q)}
				if q.Missing > 0 {
					r.do(limiter.Request{N: 1}) // it earns from the first ask that it could grant
				}
				for range r.askCount() {
					r.sleep(r.pause())
					if r.model.vague(r.now()) {
						return
					}
					r.step()
				}
			})
		})
	}
}

// vague reports whether the key may have been dropped and would then differ. It may if it is a
// full bucket that starts short.
func (m *keyModel) vague(now time.Duration) bool {
	return m.q.Missing > 0 && m.ideal.reset(now) == 0
}

// keyRun is a schedule of one key.
type keyRun struct {
	schedule
	*modelKey
	held  []held // takes that may be returned
	backs int    // number of returns
}

// held is a take at an instant, after backs returns.
type held struct {
	pairedResult
	instant time.Duration
	backs   int
}

func (r *keyRun) Fatalf(format string, args ...any) { r.T.Fatalf(format, args...) }

func (r *keyRun) step() {
	ask := r.schedule.drawAsk()
	if ask.Kind == limiter.Return {
		r.returnSome(ask.N)
		return
	}
	a := r.do(ask)
	if a.Taken > 0 && a.ideal.Taken == a.Taken {
		r.addHeld(a)
	}
	if ask.Kind == limiter.Forget {
		r.held = nil
	}
	if a.RetryAfter == 0 || !rapid.Bool().Draw(r.T, "retry") {
		return
	}
	r.sleep(a.RetryAfter - r.tick)
	if r.config.supports(r.q, limiter.Peek) {
		r.do(limiter.Request{Kind: limiter.Peek, N: ask.N, Keep: ask.Keep}) // a peek counts no denial, and starts no penalty
	}
	r.sleep(r.tick)
	if r.model.vague(r.now()) {
		return
	}
	if b := r.do(ask); !b.Allowed {
		r.Fatalf("%s: %s: denied for %v, and again after that: %s", describeQuota(r.q), describeRequest(ask), a.RetryAfter, describeResult(b.Result))
	} else if b.Taken > 0 {
		r.addHeld(b)
	}
}

func (r *keyRun) addHeld(a pairedResult) { r.held = append(r.held, held{a, r.now(), r.backs}) }

// returnSome returns a part of a take, once. A bucket may return less of it if something else was
// returned since, at another instant: see testReturns for the amount that it must return then.
func (r *keyRun) returnSome(n int64) {
	if log, ok := r.model.ideal.(*idealLog); ok && log.clipped {
		return // the remainder of each take is unknown
	}
	if bucket, ok := r.model.ideal.(*idealBucket); ok && bucket.clipped {
		return
	}
	if len(r.held) == 0 || n <= 0 {
		r.giveBack(min(n, 0), pairedResult{})
		return
	}
	i := rapid.IntRange(0, len(r.held)-1).Draw(r.T, "held")
	a := r.held[i]
	r.held = append(r.held[:i], r.held[i+1:]...)
	if !r.q.Algorithm.Windowed() && a.backs != r.backs && a.instant != r.now() {
		return
	}
	r.backs++
	r.giveBack(min(n, a.Taken), a.pairedResult)
}

// testExtremes checks that nothing overflows, whatever the arguments: results stay within their
// bounds, and the key is usable afterwards.
func testExtremes(t *testing.T, c *Config) {
	extremes := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 1 << 40, 1 << 53, 1<<53 + 1, 1 << 61, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
	check(t, c, func(rt *rapid.T) {
		q := rapid.SampledFrom([]func(*rapid.T) rules.Quota{drawAny, drawAny, drawAny, drawWarmUp}).Draw(rt, "of")(rt)
		if q.Algorithm.Windowed() && rapid.Bool().Draw(rt, "large") && q.Algorithm != rules.SlidingLog {
			q.Rate.N = min(1<<40, int64(q.Rate.Per/time.Second)*rules.MaxRate)
			q.Rate.N = max(q.Rate.N, 1)
		}
		if rapid.Bool().Draw(rt, "penalty") {
			q.Penalty = rapid.SampledFrom([]time.Duration{1000, sec, rules.MaxPenalty}).Draw(rt, "lock")
		}
		q = q.WithDefaults()
		known := c.kinds(&q)
		if len(known) == 0 {
			return
		}
		w := newWorldIn(t, rt, c)
		k := w.key(q)
		number := rapid.OneOf(rapid.SampledFrom(extremes), rapid.Int64(), rapid.Int64Range(0, 2*q.Burst))
		for range rapid.IntRange(1, 20).Draw(rt, "asks") {
			w.sleep(time.Duration(rapid.Int64Range(0, int64(q.Rate.Per/c.tick())).Draw(rt, "pause")) * c.tick())
			ask := limiter.Request{
				Kind: rapid.SampledFrom(known).Draw(rt, "kind"), N: number.Draw(rt, "n"), Keep: number.Draw(rt, "keep"),
				Within: time.Duration(number.Draw(rt, "within")), Mark: number.Draw(rt, "mark"),
			}
			inBounds(k, ask, k.askBackend(ask))
		}
		if c.supports(&q, limiter.Forget) && c.supports(&q, limiter.Take) {
			k.askBackend(limiter.Request{Kind: limiter.Forget})
			if r := k.askBackend(limiter.Request{N: q.Burst}); !r.Allowed {
				rt.Fatalf("%s: a key that was forgotten is not as new: %s", describeQuota(&q), describeResult(r))
			}
		}
	})
}

// inBounds fails for a Result that is impossible, whatever happened before.
func inBounds(k *modelKey, ask limiter.Request, r limiter.Result) {
	if bad := impossible(k.quota.Burst, ask, r); bad != "" {
		k.Fatalf("%s at %v: %s mark %d: %s: %s", describeQuota(k.quota), k.now()-epoch, describeRequest(ask), ask.Mark, bad, describeResult(r))
	}
}

// impossible names the impossible part of a Result, whatever happened before, or returns "".
func impossible(limit int64, ask limiter.Request, r limiter.Result) string {
	never := ask.N > limit-max(0, min(ask.Keep, limit))
	takes := ask.Kind == limiter.Take || ask.Kind == limiter.AtMost || ask.Kind == limiter.Reserve
	switch {
	case r.Limit != limit || r.Remaining < 0 || r.Remaining > limit:
		return "limit or remaining"
	case r.RetryAfter < 0 || r.ResetAfter < 0 || r.Delay < 0 || r.Taken < 0 || r.Mark < 0:
		return "below 0"
	case r.Allowed != (r.Reason == rules.ReasonWithin) || !r.Allowed && r.Reason != rules.ReasonLimited && r.Reason != rules.ReasonLocked:
		return "reason"
	case r.Allowed && r.RetryAfter != 0, !r.Allowed && (r.Taken != 0 || r.Delay != 0):
		return "neither allowed nor denied"
	case ask.Kind != limiter.Forget && ask.N < 0 && (r.Allowed || r.RetryAfter != 0):
		return "less than nothing"
	case ask.N > 0 && (takes && ask.Kind != limiter.AtMost || ask.Kind == limiter.Peek) && never && r.Allowed:
		return "more than there can be"
	case takes && r.Taken > max(0, ask.N), ask.Kind == limiter.Peek && r.Taken != 0:
		return "taken"
	case ask.Kind == limiter.Reserve && r.Allowed && r.Delay > max(0, ask.Within):
		return "a delay beyond what was accepted"
	case ask.N >= 0 && (ask.Kind == limiter.Charge || ask.Kind == limiter.Return) && !r.Allowed:
		return "denied what always passes"
	}
	return ""
}
