package limiter

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// builtin is a built-in algorithm: the function that makes its states.
type builtin func(q *rules.Quota, now time.Duration) State

func (f builtin) New(q *rules.Quota, now time.Duration) State { return f(q, now) }

// windowed holds the algorithms that count in windows.
var windowed = map[rules.Algorithm]builtin{
	rules.FixedWindow:   newFixedWindow,
	rules.SlidingLog:    newSlidingLog,
	rules.SlidingBlocks: newSlidingBlocks,
}

// NewAlgorithm returns the algorithm of a quota, with its penalty. The algorithm is a built-in
// one, or the one of custom under the quota's name for it. NewAlgorithm fails for an invalid
// quota, and with [ErrUnsupported] for a name that is not in custom.
func NewAlgorithm(q *rules.Quota, custom map[rules.Algorithm]Algorithm) (Algorithm, error) {
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("limiter: %w", err)
	}
	if q.Burst == rules.Unlimited {
		return builtin(newUnlimited), nil
	}
	a, err := inner(q, custom)
	if err != nil || q.Penalty == 0 {
		return a, err
	}
	return penalized{a}, nil
}

// inner returns the algorithm of a quota with a limit, without its penalty.
func inner(q *rules.Quota, custom map[rules.Algorithm]Algorithm) (Algorithm, error) {
	switch a := q.Algorithm; {
	case a.Custom():
		if algorithm := custom[a]; algorithm != nil {
			return algorithm, nil
		}
		return nil, fmt.Errorf("limiter: algorithm %q was not given to the limiter: %w", a, ErrUnsupported)
	case a.Windowed():
		return windowed[a], nil
	case q.WarmUp > 0:
		return builtin(newWarmUp), nil
	}
	return newWords(q)
}

// adapt returns the state under another quota of its family, whose algorithm is a, or nil if
// that is not possible. A running penalty is kept for at most as long as a new one would last.
// It does not lock under a quota without a penalty.
func adapt(s State, a Algorithm, q *rules.Quota, now time.Duration) State {
	lock, locked := s.(*penalty)
	if locked {
		s = lock.inner
	}
	word, ok := s.(*wordState)
	if plan, shared := a.(*words); ok && shared {
		word.adapt(plan.gcra, now)
	} else if s, ok := s.(quotaSwitcher); !ok || !s.Adapt(q, now) {
		return nil
	}
	if !locked && q.Penalty == 0 {
		return s
	}
	if !locked {
		lock = &penalty{inner: s}
	}
	lock.adapt(q, now)
	return lock
}

// clock is a state's clock: the latest instant it has seen.
type clock struct{ last int64 }

// observe returns the instant to use at now. A clock that went back by up to maxBack does not
// advance until it has caught up. Then lag is how far it is behind, and waits are extended by
// that. A clock that went back further is another clock, and leap is the distance by which all
// instants of the state have to be moved.
func (c *clock) observe(now time.Duration) (t, lag, leap int64) {
	t = instant(now)
	switch behind := c.last - t; {
	case behind > maxBack:
		leap = -behind
		c.last = t
	case behind > 0:
		return c.last, behind, 0
	}
	c.last = max(c.last, t)
	return t, 0, leap
}

// unlimited is the state of a quota without a limit.
type unlimited struct{}

func newUnlimited(*rules.Quota, time.Duration) State { return unlimited{} }

func (unlimited) Do(_ time.Duration, ask Request) Result {
	r := Result{Decision: rules.Decision{Limit: rules.Unlimited, Remaining: rules.Unlimited}}
	if ask.Kind != Forget && !ask.valid() {
		r.Reason = rules.ReasonLimited
		return r
	}
	r.Allowed, r.Reason = true, rules.ReasonWithin
	if ask.Kind.takes() {
		r.Taken = ask.N
	}
	return r
}

func (unlimited) FreshAfter(time.Duration) time.Duration { return 0 }

// clamp replaces negative values of Keep and Within by 0.
func (a *Request) clamp() { a.Keep, a.Within = max(a.Keep, 0), max(a.Within, 0) }

// forNewKey returns the ask to execute on an unknown key, which has nothing to drop or to return.
func (a *Request) forNewKey() Request {
	switch a.Kind {
	case Forget:
		return Request{Kind: Peek}
	case Return:
		return Request{Kind: Peek, N: min(a.N, 0)}
	}
	return *a
}

// valid reports whether a State can execute the ask at all.
func (a *Request) valid() bool { return a.N >= 0 && a.Kind < Forget }

func (k OpKind) takes() bool { return k == Take || k == AtMost || k == Reserve || k == Charge }
