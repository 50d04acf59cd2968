package limitertest

import (
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// keyModel is the expected behaviour of a key, written to be read: slow, for one goroutine and a
// clock that is never set back, and without any code of a backend. It has the part that all
// algorithms share; an ideal is the part of one algorithm.
type keyModel struct {
	q     *rules.Quota
	tick  time.Duration
	ideal ideal
	until time.Duration // end of the key's lock
}

// ideal is one algorithm in exact arithmetic. Its n is from 1 to the limit.
type ideal interface {
	// available returns how many permits could be taken at now.
	available(now time.Duration) int64
	// wait returns the time until n permits may be taken, after all reservations.
	wait(now time.Duration, n int64) time.Duration
	// delay returns the time that permits admitted now have to wait in line.
	delay(now time.Duration) time.Duration
	// takePermits takes n permits that are used at instant, and returns a mark that identifies
	// them.
	takePermits(now, instant time.Duration, n int64) (mark int64)
	// charge takes n permits whether they are available or not, and returns the number that was
	// not forgiven.
	charge(now time.Duration, n int64) (taken, mark int64)
	// giveBack returns n of the permits of a mark, as far as they are still missing.
	giveBack(now time.Duration, mark, n int64)
	// reset returns the time until all permits are back.
	reset(now time.Duration) time.Duration
}

// maxCharge bounds the numbers that the model counts; no compared schedule comes near.
const maxCharge = 1 << 20

func newModel(q *rules.Quota, tick time.Duration) *keyModel {
	m := &keyModel{q: q, tick: tick}
	if q.Burst != rules.Unlimited {
		m.ideal = newIdeal(q, tick)
	}
	return m
}

func newIdeal(q *rules.Quota, tick time.Duration) ideal {
	switch q.Algorithm {
	case rules.FixedWindow:
		return newIdealWindows(q)
	case rules.SlidingLog:
		return newIdealLog(q.Rate.N, q.Rate.Per, 1)
	case rules.SlidingBlocks:
		block := ceilTo(q.Rate.Per, int64(q.Blocks), tick)
		return newIdealLog(q.Rate.N, time.Duration(q.Blocks)*block, block)
	}
	if q.WarmUp > 0 {
		return newIdealWarmUp(q, tick)
	}
	return newIdealBucket(q, tick)
}

// do implements the whole contract of a [limiter.Backend], for one key.
func (m *keyModel) do(now time.Duration, ask limiter.Request) limiter.Result {
	switch {
	case ask.Kind == limiter.Forget:
		*m = *newModel(m.q, m.tick)
		return m.allowed(now, limiter.Result{})
	case ask.N < 0:
		return m.denied(now, 0)
	case m.ideal == nil:
		return m.unlimited(ask)
	}
	switch ask.Kind {
	case limiter.Charge:
		if ask.N == 0 {
			return m.allowed(now, limiter.Result{})
		}
		taken, mark := m.ideal.charge(now, min(ask.N, maxCharge))
		return m.allowed(now, limiter.Result{Taken: taken, Mark: mark})
	case limiter.Return:
		if ask.N > 0 {
			m.ideal.giveBack(now, ask.Mark, ask.N)
		}
		return m.allowed(now, limiter.Result{})
	}
	switch {
	case now < m.until:
		return m.locked(now, ask)
	case ask.N == 0:
		return m.allowed(now, limiter.Result{})
	}
	return m.execute(now, ask)
}

// execute executes a Take, Peek, AtMost or Reserve of at least one permit of a key that is not
// locked.
func (m *keyModel) execute(now time.Duration, ask limiter.Request) limiter.Result {
	keep, within := max(0, ask.Keep), max(0, ask.Within)
	n, wait, delay, ever := m.due(now, ask)
	switch {
	case !ever:
		return m.denied(now, 0)
	case wait == 0 && ask.Kind == limiter.Peek:
		return m.allowed(now, limiter.Result{Decision: rules.Decision{Delay: delay}})
	case wait == 0:
		mark := m.ideal.takePermits(now, now, n)
		return m.allowed(now, limiter.Result{Decision: rules.Decision{Delay: delay}, Taken: n, Mark: mark})
	case ask.Kind == limiter.Peek:
		return m.denied(now, wait)
	case ask.Kind == limiter.Reserve && !m.q.Shape:
		if wait > within {
			return m.penalize(now, wait-within)
		}
		mark := m.ideal.takePermits(now, now+wait, n)
		return m.allowed(now, limiter.Result{Decision: rules.Decision{Delay: wait}, Taken: n, Mark: mark})
	}
	if m.q.CountDenied && ask.Kind != limiter.Reserve {
		m.ideal.charge(now, min(ask.N, maxCharge))
		wait = m.ideal.wait(now, n+keep)
	}
	return m.penalize(now, wait)
}

// due returns the number of permits that an ask wants, the time until they are there, and the
// delay until their turn in line. For a Reserve, wait also lasts until the delay is within its
// Within. ever is false if there can never be as many permits.
func (m *keyModel) due(now time.Duration, ask limiter.Request) (n int64, wait, delay time.Duration, ever bool) {
	n = ask.N
	keep := max(0, ask.Keep)
	if ask.Kind == limiter.AtMost {
		n = max(1, min(n, m.ideal.available(now)-keep))
	}
	if keep > m.q.Burst-n {
		return n, 0, 0, false
	}
	wait, delay = m.ideal.wait(now, n+keep), m.ideal.delay(now)
	if ask.Kind == limiter.Reserve {
		wait = max(wait, delay-max(0, ask.Within))
	}
	return n, wait, delay, true
}

// penalize denies an ask that could pass later, and locks the key.
func (m *keyModel) penalize(now, retry time.Duration) limiter.Result {
	if m.q.Penalty > 0 {
		m.until = now + m.q.Penalty
	}
	return m.denied(now, max(retry, m.q.Penalty))
}

func (m *keyModel) allowed(now time.Duration, r limiter.Result) limiter.Result {
	r.Allowed, r.Reason = true, rules.ReasonWithin
	return m.fillState(now, r)
}

func (m *keyModel) denied(now, retry time.Duration) limiter.Result {
	return m.fillState(now, limiter.Result{Decision: rules.Decision{Reason: rules.ReasonLimited, RetryAfter: retry}})
}

// locked denies an ask until the lock has ended and the ask can pass, or for ever.
func (m *keyModel) locked(now time.Duration, ask limiter.Request) limiter.Result {
	retry := m.until - now
	if ask.N > 0 {
		_, wait, _, ever := m.due(now, ask)
		if ask.Kind == limiter.Reserve && !m.q.Shape {
			wait -= max(0, ask.Within)
		}
		if retry = max(retry, wait); !ever {
			retry = 0
		}
	}
	r := m.fillState(now, limiter.Result{Decision: rules.Decision{Reason: rules.ReasonLocked, RetryAfter: retry}})
	r.Remaining = 0
	return r
}

// fillState fills in the state of the key.
func (m *keyModel) fillState(now time.Duration, r limiter.Result) limiter.Result {
	if m.ideal == nil {
		r.Limit, r.Remaining = rules.Unlimited, rules.Unlimited
		return r
	}
	r.Limit, r.Remaining = m.q.Burst, m.ideal.available(now)
	r.ResetAfter = max(m.ideal.reset(now), m.until-now, 0)
	return r
}

func (m *keyModel) unlimited(ask limiter.Request) limiter.Result {
	var r limiter.Result
	if ask.Kind != limiter.Peek && ask.Kind != limiter.Return {
		r.Taken = ask.N
	}
	return m.allowed(0, r)
}
