package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// penalized is an algorithm that locks a key after a denial.
type penalized struct{ inner Algorithm }

func (a penalized) New(q *rules.Quota, now time.Duration) State {
	inner := a.inner.New(q, now)
	if inner == nil {
		return nil
	}
	return &penalty{inner: inner, clock: clock{instant(now)}, length: q.Penalty, shape: q.Shape}
}

// penalty is the lock on a state. It is checked first, and asks do not extend it. It ends on
// its own, and the state under it continues. A denial of an ask that can never pass starts no
// lock.
type penalty struct {
	inner State
	clock
	until  int64 // the instant at which the lock ends
	length time.Duration
	shape  bool // Shape of the quota
}

// remainingTime returns the remaining time of the lock at now.
func (p *penalty) remainingTime(now time.Duration) time.Duration {
	t, lag, leap := p.observe(now)
	if leap != 0 {
		p.until = max(0, p.until+leap)
	}
	if p.until <= t {
		return 0
	}
	return time.Duration(p.until - t + lag)
}

func (p *penalty) Do(now time.Duration, ask Request) Result {
	if p.length == 0 {
		return p.inner.Do(now, ask)
	}
	left := p.remainingTime(now)
	asks := ask.valid() && (ask.Kind == Peek || ask.Kind != Charge && ask.Kind.takes())
	if left > 0 && asks {
		return p.locked(now, left, &ask)
	}
	r := p.inner.Do(now, ask)
	if asks && ask.Kind != Peek && !r.Allowed && r.RetryAfter > 0 {
		p.until = p.last + int64(p.length)
		left = p.remainingTime(now)
		r.RetryAfter = max(r.RetryAfter, left)
	}
	r.ResetAfter = max(r.ResetAfter, left)
	return r
}

// locked denies ask until the lock has ended and ask can pass, since a denial at the end of the
// lock would start another one.
func (p *penalty) locked(now, left time.Duration, ask *Request) Result {
	peek := Request{Kind: Peek, N: ask.N, Keep: ask.Keep}
	if ask.Kind == AtMost {
		peek.N = min(ask.N, 1)
	}
	r := p.inner.Do(now, peek)
	retry, within := r.RetryAfter, max(ask.Within, 0)
	switch {
	case ask.Kind == Reserve && p.shape && ask.N > 0: // its turn comes after the whole queue
		retry = max(retry, r.ResetAfter-within)
	case ask.Kind == Reserve:
		retry -= within
	}
	if retry = max(retry, left); !r.Allowed && r.RetryAfter == 0 {
		retry = 0 // never
	}
	return Result{Decision: rules.Decision{
		Reason: rules.ReasonLocked, Limit: r.Limit, RetryAfter: retry, ResetAfter: max(left, r.ResetAfter),
	}}
}

func (p *penalty) FreshAfter(now time.Duration) time.Duration {
	return max(p.remainingTime(now), p.inner.FreshAfter(now))
}

// owes implements [debtor] if the state under the lock does.
func (p *penalty) owes(now time.Duration) (owed debt, spent bool) {
	owed, spent = p.inner.(debtor).owes(now)
	if left := p.remainingTime(now); left > 0 {
		owed[debtLock] = p.until
		owed[debtUntil] = max(owed[debtUntil], p.until)
		spent = spent || p.length > 0
	}
	return owed, spent
}

// indebt implements [debtor] if the state under the lock does.
func (p *penalty) indebt(owed *debt, now time.Duration) {
	p.inner.(debtor).indebt(owed, now)
	p.remainingTime(now)
	p.until = max(p.until, min(owed[debtLock], p.last+int64(p.length)))
}

// adapt switches to another penalty. A running lock ends no later than one that starts now.
func (p *penalty) adapt(q *rules.Quota, now time.Duration) {
	left := p.remainingTime(now)
	p.length, p.shape = q.Penalty, q.Shape
	if p.length > 0 && left > p.length {
		p.until = p.last + int64(p.length)
	}
}

func (p *penalty) numbers() []int64 {
	return append([]int64{p.last, p.until}, p.inner.(storable).numbers()...)
}

func (p *penalty) setNumbers(n []int64) bool {
	if !areInstants(n) || !p.inner.(storable).setNumbers(n[2:]) {
		return false
	}
	p.last, p.until = n[0], min(n[1], n[0]+int64(p.length))
	return true
}
