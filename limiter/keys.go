package limiter

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// Keys holds each of many keys to one quota, in memory, as [Keyed] tells. It is safe
// for concurrent use. Now is as for [Bucket].
type Keys interface {
	// Do does what is asked of the key at now. Hash is [hotparam.Hash] of key.
	Do(now time.Duration, hash uint64, key []byte, ask Ask) Result
	// Stats is a snapshot of the counters.
	Stats() Stats
	// Sweep drops at once all keys that are as good as new at now. It is not needed:
	// every call sweeps a little.
	Sweep(now time.Duration)
	// SetQuota goes on with another quota at now, and keeps what was taken. It fails,
	// with [ErrUnsupported] where only new Keys will do, and then changes nothing.
	SetQuota(q *hotparam.Quota, now time.Duration) error
}

// NewKeys makes [Keys] for up to maxKeys keys at a time, 1 to 16,777,216: a [*Keyed]
// where one word for each is enough, which is all buckets without warm-up and penalty.
// The others have a lock for each key. Custom are the algorithms of the user's own, by
// name.
func NewKeys(q *hotparam.Quota, maxKeys int, custom map[hotparam.Algorithm]Algorithm) (Keys, error) {
	if bucketed(q) && q.Penalty == 0 {
		g, err := ofQuota(q)
		if err != nil {
			return nil, err
		}
		k, err := newKeyed(g, maxKeys)
		if err != nil {
			return nil, err
		}
		return k, nil
	}
	a, err := NewAlgorithm(q, custom)
	if err != nil {
		return nil, err
	}
	s, err := newStates(maxKeys)
	if err != nil {
		return nil, err
	}
	k := &stateKeys{states: s, custom: custom}
	k.rule.Store(&keysRule{q, a})
	return k, nil
}

// stateKeys are Keys whose states have locks.
type stateKeys struct {
	states *states
	custom map[hotparam.Algorithm]Algorithm
	rule   atomic.Pointer[keysRule]
	mu     sync.Mutex // held while the quota is changed
}

// keysRule is what all keys are held to.
type keysRule struct {
	quota     *hotparam.Quota
	algorithm Algorithm
}

func (r *keysRule) of(*hotparam.Quota) (Algorithm, error) { return r.algorithm, nil }

func (k *stateKeys) Do(now time.Duration, hash uint64, key []byte, ask Ask) Result {
	rule := k.rule.Load()
	if rule.quota.Burst == hotparam.Unlimited {
		return unlimited{}.Do(now, ask)
	}
	r, err := k.do(now, hash, key, rule, ask)
	if err != nil { // an algorithm of the user's own that makes no state
		return open(&ask, Result{Decision: hotparam.Decision{Allowed: true}})
	}
	return r
}

func (k *stateKeys) do(now time.Duration, hash uint64, key []byte, rule *keysRule, ask Ask) (Result, error) {
	if n := k.states.table.find(hash, key); n != nil {
		if r, ok, err := n.kept.do(now, rule.quota, rule, ask); ok {
			k.states.tend(now)
			return r, err
		}
	}
	return k.states.enter(now, hash, string(key), rule.quota, rule, ask)
}

func (k *stateKeys) Stats() Stats { return k.states.table.stats() }

func (k *stateKeys) Sweep(now time.Duration) { k.states.table.sweepAll(instant(now)) }

// SetQuota adapts all states, one after the other; a key that is asked meanwhile comes
// first.
func (k *stateKeys) SetQuota(q *hotparam.Quota, now time.Duration) error {
	a, err := NewAlgorithm(q, k.custom)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	old, rule := k.rule.Load(), &keysRule{q, a}
	if s := old.algorithm.New(old.quota, now); s == nil || *q != *old.quota && adapt(s, q, now) == nil {
		return errOtherKind(q)
	}
	k.rule.Store(rule)
	k.states.table.each(func(n *node[guarded]) bool {
		n.kept.mu.Lock()
		defer n.kept.mu.Unlock()
		if n.kept.state != nil {
			_ = n.kept.hold(now, q, rule) // an algorithm that makes no state leaves the old one
		}
		return true
	})
	return nil
}

// states are the States of many keys, each under a lock of its own.
type states struct{ table *table[guarded] }

func newStates(maxKeys int) (*states, error) {
	t, err := newTable(maxKeys, dropFresh)
	return &states{t}, err
}

// guarded is one key's State.
type guarded struct {
	mu    sync.Mutex
	quota *hotparam.Quota // that it is held to
	state State           // nil: dropped
}

// algorithms tells the algorithm of a quota.
type algorithms interface {
	of(q *hotparam.Quota) (Algorithm, error)
}

// do asks the state, under this quota; false when it was dropped.
func (g *guarded) do(now time.Duration, q *hotparam.Quota, from algorithms, ask Ask) (Result, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == nil {
		return Result{}, false, nil
	}
	if ask.Kind == Forget {
		g.quota, ask = nil, Ask{Kind: Peek}
	}
	if err := g.hold(now, q, from); err != nil {
		return Result{}, true, err
	}
	return g.state.Do(now, ask), true, nil
}

// hold makes the state one of this quota: it goes on if it can, else it starts anew, as
// it does where it has none. The caller holds the lock.
func (g *guarded) hold(now time.Duration, q *hotparam.Quota, from algorithms) error {
	if g.quota == q {
		return nil
	}
	if g.quota != nil && *g.quota == *q {
		g.quota = q
		return nil
	}
	a, err := from.of(q)
	if err != nil {
		return err
	}
	var state State
	if g.quota != nil {
		state = adapt(g.state, q, now)
	}
	if state == nil {
		if state = a.New(q, now); state == nil {
			return errNoState(q)
		}
	}
	g.quota, g.state = q, state
	return nil
}

func errNoState(q *hotparam.Quota) error {
	return fmt.Errorf("limiter: algorithm %q makes no state: %w", q.Algorithm, ErrUnsupported)
}

// dropFresh drops a state that is as good as new; one that is in use is left alone.
func dropFresh(g *guarded, now int64) bool {
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	if g.state == nil || g.state.FreshAfter(time.Duration(now)) > 0 {
		return false
	}
	g.state = nil
	return true
}

// tend drops some idle keys if it is time to.
func (k *states) tend(now time.Duration) {
	if t := instant(now); k.table.due(t) {
		k.table.tend(t)
	}
}

// enter asks a key that is not in the table. Only a state that is not as good as new
// enters it. Key is kept.
func (k *states) enter(now time.Duration, hash uint64, key string, q *hotparam.Quota, from algorithms, ask Ask) (Result, error) {
	s := k.table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := k.table.find(hash, []byte(key)); n != nil { // another was faster
		r, _, err := n.kept.do(now, q, from, ask) // not dropped: that needs our lock
		return r, err
	}
	a, err := from.of(q)
	if err != nil {
		return Result{}, err
	}
	t := instant(now)
	born := now
	if late := s.floor - t; late > maxBack {
		s.floor = 0 // it is from before a reset of the clock
	} else if late > 0 {
		born = time.Duration(s.floor)
	}
	state := a.New(q, born)
	if state == nil {
		return Result{}, errNoState(q)
	}
	r := state.Do(now, ask.ofNew())
	if state.FreshAfter(now) == 0 {
		return r, nil
	}
	if !k.table.room(s, t) {
		return open(&ask, r), nil
	}
	k.table.put(newGuarded(hash, key, q, state))
	return r, nil
}

func newGuarded(hash uint64, key string, q *hotparam.Quota, state State) *node[guarded] {
	return &node[guarded]{hash: hash, key: key, kept: guarded{quota: q, state: state}}
}
