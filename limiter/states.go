package limiter

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// keyStates holds one key's states.
type keyStates struct {
	lent lentWord
	mu   sync.Mutex
	sides
	dropped bool
	calm    uint8 // consecutive asks under a quota whose word might be lent, and is not
}

// found is the outcome of an ask on a key that was found.
type found uint8

const (
	keyDropped found = iota // look again
	keyAsked
	keyCalm // asked, and worth a renewal
)

// do executes ask under q and sets r.
func (g *keyStates) do(now time.Duration, q *rules.Quota, from maker, ask *Request, r *Result) (found, error) {
	g.mu.Lock()
	switch {
	case g.dropped:
		g.mu.Unlock()
		return keyDropped, nil
	case !g.isStraight(q, ask.Kind) || g.family >= customFamily:
		defer g.mu.Unlock() // a custom algorithm may panic
		g.settle()
		g.calm = 0
		res, err := g.sides.do(now, q, from, ask)
		g.lend()
		if err == errUnlocked {
			return keyDropped, nil
		}
		*r = res
		return keyAsked, err
	}
	g.settle()
	*r = g.state.Do(now, *ask)
	g.lend()
	calm := g.calm
	g.mu.Unlock()
	if calm >= calmEnough {
		return keyCalm, nil
	}
	return keyAsked, nil
}

// takeNow takes n permits under q and sets d, which must be zero, without a Request and a Result.
// It returns false if the take needs a Request: the quota has changed, or the state is not a
// window.
func (g *keyStates) takeNow(now time.Duration, q *rules.Quota, n int64, d *rules.Decision) (ok bool) {
	g.mu.Lock()
	if g.quota == q {
		ok = true
		switch s := g.state.(type) {
		case *window[fixedFrame]:
			s.takeNow(now, n, d)
		case *window[logFrame]:
			s.takeNow(now, n, d)
		case *window[blockFrame]:
			s.takeNow(now, n, d)
		default:
			ok = false
		}
	}
	g.mu.Unlock()
	return ok
}

// dropFresh marks a key as gone if all of its states equal new ones and it is not in use just
// now. Otherwise it returns the instant from which they will, or cannotEvict.
func dropFresh(g *keyStates, now int64) (dropped bool, until int64) {
	if g.lent.busy(now) {
		return false, g.lent.word.Load()
	}
	if !g.mu.TryLock() {
		return false, cannotEvict
	}
	defer g.mu.Unlock()
	if g.dropped {
		return false, cannotEvict
	}
	g.settle()
	if left := g.freshAfter(time.Duration(now)); left > 0 {
		g.lend()
		return false, now + int64(min(left, maxNow))
	}
	g.drop()
	return true, 0
}

// evict marks a key as gone and adds its debt to the stripe's debts. It returns false, and does
// nothing, if the key is in use just now. The caller holds the lock of the stripe.
func (k *table) evict(s *stripe, n *keyNode, now int64) bool {
	g := &n.kept
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	if g.dropped {
		return false
	}
	g.settle()
	hash := n.keyed(k.seed)
	for _, x := range append(g.others(), g.side) {
		k.keepDebt(s, hash, x.family, x.state, now)
	}
	g.drop()
	return true
}

// locked calls f under the lock, with the states settled, unless the key was dropped.
func (g *keyStates) locked(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dropped {
		return
	}
	g.settle()
	f()
	g.lend()
}

// drop marks the key as gone. The caller holds the lock, and has settled the states.
func (g *keyStates) drop() { g.dropped, g.sides = true, sides{} }

// eachKept calls f for every key, with its lock held, and its states.
func (k *table) eachKept(f func(n *keyNode, g *keyStates)) {
	k.each(func(n *keyNode) bool {
		n.kept.locked(func() { f(n, &n.kept) })
		return true
	})
}

// beginner is implemented where unknown keys may owe permits. It returns the state of such a
// key, or nil if the key owes nothing.
type beginner interface {
	openingState(a Algorithm, q *rules.Quota, key []byte) State
}

// enter executes ask on m.key, which is not in the table. It adds the key only if its state then
// differs from a new one. An evicted key whose debt the ask does not change is not added
// either.
func (k *table) enter(now time.Duration, hash uint64, q *rules.Quota, m maker, ask *Request) (r Result, err error) {
	s := k.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.table, m.stripe = k, s
	if n := k.findNode(hash, m.key); n != nil { // another goroutine was faster
		_, err = n.kept.do(now, q, m, ask, &r) // never dropped, which needs the lock held here
		return r, err
	}
	a, err := m.algorithmFor(q)
	if err != nil {
		return Result{}, err
	}
	t := instant(now)
	born := now
	if late := s.floor - t; late > maxBack {
		s.floor = 0 // floor is from before a reset of the clock
	} else if late > 0 {
		born = time.Duration(s.floor)
	}
	state, inherits, err := m.create(a, q, born)
	if err != nil {
		return Result{}, err
	}
	var before debt
	if inherits {
		before, _ = debtOf(state, now)
	}
	r = state.Do(now, ask.forNewKey())
	if state.FreshAfter(now) == 0 || ask.Kind == Return {
		return r, nil
	}
	if inherits {
		if after, _ := debtOf(state, now); after == before {
			return r, nil
		}
	}
	if !k.makeRoom(s, t) {
		k.keepDebt(s, k.hash(m.key), familyOf(q), state, t)
		return r, nil
	}
	k.insert(hash, newGuarded(hash, m.key, side{familyOf(q), q, state}, lendable(a)))
	return r, nil
}

// newGuarded returns a key with one state. The key lends the state's word while that has the
// arithmetic of plan, which may be nil.
func newGuarded(hash uint64, key []byte, o side, plan *words) *keyNode {
	n := newNode(hash, key)
	n.kept.initStates(sides{side: o}, plan)
	return n
}

func (g *keyStates) initStates(s sides, plan *words) {
	g.sides, g.lent.plan = s, plan
	g.lent.word.Store(gone)
	g.lend()
}
