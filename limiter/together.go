package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// together reports whether the ask takes permits only if the others with Together are allowed.
func (a *Request) together() bool { return a.Together && a.Kind <= Reserve }

// notAsked is the result of an ask with Together after another one was denied.
var notAsked = Result{Decision: rules.Decision{Allowed: true}}

// askedTwice reports whether ops[i] and another op with the same key are Together. Permits that
// one of them would have taken, and has not, may be the reason why the other was denied.
func askedTwice(ops []Op, i int) bool {
	if !ops[i].together() {
		return false
	}
	for k := range ops {
		if k != i && ops[k].together() && ops[k].Key == ops[i].Key && ops[k].Name == ops[i].Name {
			return true
		}
	}
	return false
}

// deniedTogether reports whether one of ops with Together and without an error was denied.
func deniedTogether(ops []Op, results []Result, err error) bool {
	for i := range ops {
		if ops[i].together() && !results[i].Allowed && ErrorOf(err, i) == nil {
			return true
		}
	}
	return false
}

// doTogether executes the asks with Together. It tries all of them first, so that a request
// which one limit denies holds nothing of another, not even for an instant. After that, another
// ask of the call or another goroutine may still take permits that an ask needs. Then the
// others return what they took. A fixed window that has begun that way stays begun.
func (m *Memory) doTogether(now time.Duration, ops []Op, results []Result, errs OpErrors) OpErrors {
	denied := false
	for i := range ops {
		if op := &ops[i]; op.together() {
			err := m.try(now, op, &results[i])
			errs = setError(errs, len(ops), i, err)
			denied = denied || err == nil && !results[i].Allowed
		}
	}
	for i := range ops {
		op, r := &ops[i], &results[i]
		if !op.together() || denied && r.Allowed || errs != nil && errs[i] != nil {
			continue
		}
		tried := *r
		*r = Result{}
		errs = setError(errs, len(ops), i, m.do(now, op, r))
		switch {
		case denied && r.Allowed: // the missing permits were returned in between
			m.giveBack(now, op, r)
			*r = tried
		case !denied && !r.Allowed && (errs == nil || errs[i] == nil):
			for k := i - 1; k >= 0; k-- {
				if ops[k].together() && results[k].Taken > 0 {
					m.giveBack(now, &ops[k], &results[k])
				}
			}
			for k := range ops[:i] {
				if ops[k].together() && results[k].Taken > 0 {
					results[k] = Result{}
					errs = setError(errs, len(ops), k, m.try(now, &ops[k], &results[k]))
				}
			}
			return errs
		}
	}
	return errs
}

// try sets r to the result that op would have, and takes nothing.
func (m *Memory) try(now time.Duration, op *Op, r *Result) error {
	trial := *op
	trial.Request = Request{Kind: Peek, N: op.N, Keep: op.Keep}
	if op.Kind == AtMost {
		trial.N = min(op.N, 1)
	}
	if err := m.do(now, &trial, r); err != nil || op.Kind != Reserve {
		return err
	}
	switch within := max(op.Within, 0); {
	case r.Allowed && r.Delay > within: // its turn in a queue
		r.Allowed, r.Reason = false, rules.ReasonLimited
	case r.Reason == rules.ReasonLimited && 0 < r.RetryAfter && r.RetryAfter <= within && !op.Quota.Shape:
		r.Allowed, r.Reason, r.Delay, r.RetryAfter = true, rules.ReasonWithin, r.RetryAfter, 0
	}
	return nil
}

// giveBack returns the permits that op took.
func (m *Memory) giveBack(now time.Duration, op *Op, r *Result) {
	back := *op
	back.Request = r.Return()
	_ = m.do(now, &back, new(Result)) // taken permits can be returned
}
