package limiter

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam"
)

// builtin is one of our own algorithms: what makes its states.
type builtin func(q *hotparam.Quota, now time.Duration) State

func (f builtin) New(q *hotparam.Quota, now time.Duration) State { return f(q, now) }

// windowed are the algorithms that count what passed within a window.
var windowed = map[hotparam.Algorithm]builtin{
	hotparam.FixedWindow:   newFixedWindow,
	hotparam.SlidingLog:    newSlidingLog,
	hotparam.SlidingBlocks: newSlidingBlocks,
}

// NewAlgorithm returns the algorithm of a quota: a built-in one, or the one of custom under
// the quota's name for it, with the quota's penalty. It fails for a quota that is not valid,
// and with [ErrUnsupported] for a name that is not in custom.
func NewAlgorithm(q *hotparam.Quota, custom map[hotparam.Algorithm]Algorithm) (Algorithm, error) {
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("limiter: %w", err)
	}
	if q.Burst == hotparam.Unlimited {
		return builtin(newUnlimited), nil
	}
	a, err := inner(q, custom)
	if err != nil || q.Penalty == 0 {
		return a, err
	}
	return penalized{a}, nil
}

// inner is the algorithm of a quota with a limit, its penalty aside.
func inner(q *hotparam.Quota, custom map[hotparam.Algorithm]Algorithm) (Algorithm, error) {
	switch a := q.Algorithm; {
	case a.Custom():
		if own := custom[a]; own != nil {
			return own, nil
		}
		return nil, fmt.Errorf("limiter: algorithm %q was not given to the limiter: %w", a, ErrUnsupported)
	case a.Windowed():
		return windowed[a], nil
	case q.WarmUp > 0:
		return builtin(newWarmUp), nil
	}
	return newWords(q)
}

// adapt makes a state go on with another quota of its family; nil: it cannot. A penalty
// that runs is kept, at most for as long as a new one would be, and bars nobody whose
// quota has none.
func adapt(s State, q *hotparam.Quota, now time.Duration) State {
	lock, locked := s.(*penalty)
	if locked {
		s = lock.inner
	}
	if a, ok := s.(adapter); !ok || !a.Adapt(q, now) {
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

// storable is a state that a snapshot can hold.
type storable interface {
	// appendState appends all that is to be known of the state beside its quota.
	appendState(b []byte) []byte
	// restoreState makes a new state what appendState wrote; false: these bytes are no
	// such state, and it is not to be used.
	restoreState(b []byte) bool
}

// clock is what a state knows of the clock: the latest instant that it was told.
type clock struct{ last int64 }

// tell is the instant to reckon with at now. A clock that went back by up to maxBack
// stands still, and lag is how far behind it is: what is waited for takes longer by
// it. One that went back further is another clock: leap is how far all instants that
// the state has are to be moved.
func (c *clock) tell(now time.Duration) (t, lag, leap int64) {
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

// unlimited is the state of a quota without a limit: there is none.
type unlimited struct{}

func newUnlimited(*hotparam.Quota, time.Duration) State { return unlimited{} }

func (unlimited) Do(_ time.Duration, ask Ask) Result {
	r := Result{Decision: hotparam.Decision{Limit: hotparam.Unlimited, Remaining: hotparam.Unlimited}}
	if ask.Kind != Forget && !ask.valid() {
		r.Reason = hotparam.ReasonLimited
		return r
	}
	r.Allowed, r.Reason = true, hotparam.ReasonWithin
	if ask.Kind.takes() {
		r.Taken = ask.N
	}
	return r
}

func (unlimited) FreshAfter(time.Duration) time.Duration { return 0 }

// clamp makes what cannot be asked what comes nearest to it.
func (a *Ask) clamp() { a.Keep, a.Within = max(a.Keep, 0), max(a.Within, 0) }

// ofNew is what is asked of a key that is not known: it has nothing to lose, or to get
// back.
func (a *Ask) ofNew() Ask {
	switch a.Kind {
	case Forget:
		return Ask{Kind: Peek}
	case Return:
		return Ask{Kind: Peek, N: min(a.N, 0)}
	}
	return *a
}

// valid tells whether a State can do it at all.
func (a *Ask) valid() bool { return a.N >= 0 && a.Kind < Forget }

func (k Kind) takes() bool { return k == Take || k == AtMost || k == Reserve || k == Charge }
