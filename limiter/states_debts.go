package limiter

import (
	"errors"
	"hash/maphash"
	"math"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// debtor is a state whose debt can be kept without it. States of custom algorithms are not
// debtors.
type debtor interface {
	// owes returns the debt at now, and whether less than one permit is left. The zero debt
	// means that there is none.
	owes(now time.Duration) (owed debt, spent bool)
	// indebt makes a new state begin with a debt, at now.
	indebt(owed *debt, now time.Duration)
}

// debtOf is like owes, for any state. A state that is not a debtor owes only the time until it
// equals a new one, in which its key is denied: see barred.
func debtOf(s State, now time.Duration) (owed debt, spent bool) {
	if d := debtorOf(s); d != nil {
		return d.owes(now)
	}
	left := s.FreshAfter(now)
	if left <= 0 {
		return debt{}, false
	}
	until := instant(now) + int64(min(left, maxNow))
	return debt{debtUntil: until, debtAt: until, debtLock: until}, true
}

// debtorOf returns a state as a debtor, or nil.
func debtorOf(s State) debtor {
	if lock, ok := s.(*penalty); ok {
		if _, ok := lock.inner.(debtor); !ok {
			return nil
		}
	}
	d, _ := s.(debtor)
	return d
}

// hash returns the hash of a key in the debts.
func (k *table) hash(key []byte) uint64 { return maphash.Bytes(k.seed, key) }

// keepDebt adds the debt of a state to the debts. Families do not convert, so each has its own.
func (k *table) keepDebt(s *stripe, hash uint64, family family, state State, t int64) {
	if state == nil {
		return
	}
	if owed, spent := debtOf(state, time.Duration(t)); owed[debtUntil] > t {
		k.debtsFor(s, t).add(mixed(hash, int(family)), family, spent, &owed, t)
	}
}

// inheritDebt makes a new state of a key begin with the key's debt. It returns the state to use,
// and whether there is a debt.
func (k *table) inheritDebt(s *stripe, key []byte, family family, state State, now time.Duration) (_ State, inherits bool) {
	t := instant(now)
	if s.settleDebts(t) == nil || family == unlimitedFamily {
		return state, false
	}
	owed, found := k.owed(s, mixed(k.hash(key), int(family)), t)
	if !found {
		return state, false
	}
	if d := debtorOf(state); d != nil {
		d.indebt(&owed, now)
		return state, true
	}
	return &barred{State: state, clock: clock{t}, until: owed[debtUntil]}, true
}

// maker makes the states of a key. States of a new family begin with the key's debt.
type maker struct {
	algorithms
	table  *table  // nil for a key without a table
	stripe *stripe // the key's stripe if its lock is held, or nil
	key    []byte
}

// errUnlocked means that a new state needs the lock of its stripe.
var errUnlocked = errors.New("limiter: a new state without its stripe's lock")

// create returns a new state at now, and whether it begins with a debt.
func (m *maker) create(a Algorithm, q *rules.Quota, now time.Duration) (state State, inherits bool, err error) {
	if m.table != nil && m.stripe == nil {
		return nil, false, errUnlocked
	}
	var opened State // state of an unknown key that owes permits
	if o, ok := m.algorithms.(beginner); ok {
		opened = o.openingState(a, q, m.key)
	}
	if state = a.New(q, now); state == nil {
		return nil, false, errNoState(q)
	}
	if m.table != nil {
		state, inherits = m.table.inheritDebt(m.stripe, m.key, familyOf(q), state, now)
	}
	switch {
	case opened == nil:
	case inherits: // the order of both debts is not known, so the key owes the sum
		r := opened.Do(now, Request{Kind: Peek})
		state.Do(now, Request{Kind: Charge, N: int64(math.Ceil(max(float64(r.Limit-r.Remaining), owedBy(opened))))})
	default:
		state = opened
	}
	return state, inherits, nil
}

// barred is the state of a custom algorithm whose key was evicted. It denies until the key's
// state would have equalled a new one.
type barred struct {
	State
	clock
	until int64
}

func (b *barred) remainingTime(now time.Duration) time.Duration {
	t, lag, leap := b.observe(now)
	if b.until += leap; b.until <= t {
		return 0
	}
	return time.Duration(b.until - t + lag)
}

func (b *barred) Do(now time.Duration, ask Request) Result {
	left := b.remainingTime(now)
	if left <= 0 || ask.Kind == Charge || ask.Kind == Return || !ask.valid() {
		return b.State.Do(now, ask)
	}
	r := b.State.Do(now, Request{Kind: Peek})
	r.Allowed, r.Reason, r.Remaining, r.Delay = false, rules.ReasonLimited, 0, 0
	r.RetryAfter, r.ResetAfter = left, max(left, r.ResetAfter)
	return r
}

// FreshAfter implements [State].
func (b *barred) FreshAfter(now time.Duration) time.Duration {
	return max(b.remainingTime(now), b.State.FreshAfter(now))
}
