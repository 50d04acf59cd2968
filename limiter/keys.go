package limiter

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Keys holds each of many keys to one quota, in memory. It is safe for concurrent use. Now
// is as for [Bucket].
//
// Only a key in its initial state is ever dropped: however many keys come, none gets a
// fresh burst by being forgotten. A key is in use until what was taken is back, so maxKeys
// should be the number of keys expected within that time. Where the table is full of keys in
// use, a new key takes the place of one of them, as with [Memory].
type Keys interface {
	// Do executes ask on the key at now. Hash is [rules.Hash] of key; it only finds the
	// key, whose bytes decide. They are copied if the key is new.
	Do(now time.Duration, hash uint64, key []byte, ask Ask) Result
	// Stats returns a snapshot of the counters.
	Stats() Stats
	// Sweep drops at once all keys in their initial state. It is not needed: every call
	// sweeps a little.
	Sweep(now time.Duration)
	// SetQuota replaces the quota at now, like that of [Bucket].
	SetQuota(q *rules.Quota, now time.Duration) error
	// Owe has all keys owe more permits from now on or, below zero, less: also those that are
	// not known yet, as far as they have not earned them by the time that they are. See
	// [Holding].
	Owe(by Owing, now time.Duration)
	// Spent returns what known keys, and those that owe more than other unknown ones, lack
	// at now, by [KeyID]. All is false if there are keys besides that owe something, since the
	// table was full.
	Spent(now time.Duration) (of map[uint64]float64, all bool)
}

// Stats counts what happened to many keys.
type Stats struct {
	Keys    int64  // held now
	Evicted uint64 // dropped in their initial state
	// Displaced counts keys that were evicted while they owed something, for want of room.
	Displaced uint64
	// Inherited counts the asks of new keys that began with a debt: their own, from before
	// they were displaced, or rarely that of another key.
	Inherited uint64
}

// NewKeys returns Keys for up to maxKeys keys at a time, 1 to 16,777,216. Buckets without
// warm-up and penalty are lock-free; other quotas have a lock for each key. Custom holds
// algorithms of your own, by name; it may be nil.
func NewKeys(q *rules.Quota, maxKeys int, custom map[rules.Algorithm]Algorithm) (Keys, error) {
	if bucketed(q) && q.Penalty == 0 {
		r := &reckoning{}
		if err := r.setQuota(q); err != nil {
			return nil, err
		}
		k, err := newWordKeys(r, maxKeys, custom)
		if err != nil {
			return nil, err
		}
		return k, nil
	}
	k, err := newStateKeys(q, maxKeys, custom)
	if err != nil {
		return nil, err
	}
	return k, nil
}

func newStateKeys(q *rules.Quota, maxKeys int, custom map[rules.Algorithm]Algorithm) (*stateKeys, error) {
	a, err := NewAlgorithm(q, custom)
	if err != nil {
		return nil, err
	}
	s, err := newStates(maxKeys)
	if err != nil {
		return nil, err
	}
	k := &stateKeys{states: s, custom: custom}
	k.rule.Store(&keysRule{quota: q, algorithm: a, family: familyOf(q)})
	return k, nil
}

// stateKeys are Keys whose states have locks.
type stateKeys struct {
	states *states
	custom map[rules.Algorithm]Algorithm
	rule   atomic.Pointer[keysRule]
}

// keysRule is what all keys are held to.
type keysRule struct {
	quota     *rules.Quota
	algorithm Algorithm
	family    family
	opening   opening
}

func (r *keysRule) begin(a Algorithm, q *rules.Quota, key []byte) State {
	return r.opening.state(a, q, key)
}

func (r *keysRule) of(*rules.Quota) (Algorithm, error) { return r.algorithm, nil }

func (k *stateKeys) Do(now time.Duration, hash uint64, key []byte, ask Ask) Result {
	rule := k.rule.Load()
	if rule.quota.Burst == rules.Unlimited && (ask.Kind < Return || !k.states.table.has(hash, key)) {
		return unlimited{}.Do(now, ask)
	}
	r, err := k.do(now, hash, key, rule, &ask)
	if err != nil { // an algorithm of the user's own that makes no state
		return open(&ask, Result{Decision: rules.Decision{Allowed: true}})
	}
	if r.Taken > 0 {
		r.Receipt.state = rule.family
	}
	return r
}

func (k *stateKeys) do(now time.Duration, hash uint64, key []byte, rule *keysRule, ask *Ask) (r Result, err error) {
	if n := k.states.table.find(hash, key); n != nil {
		if found, err := n.kept.do(now, rule.quota, maker{algorithms: rule, states: k.states}, ask, &r); found != keyDropped {
			k.states.tend(now)
			return r, err
		}
	}
	return k.states.enter(now, hash, key, rule.quota, rule, ask)
}

func (k *stateKeys) Stats() Stats { return k.states.table.stats() }

func (k *stateKeys) Sweep(now time.Duration) { k.states.table.sweepAll(instant(now)) }

// SetQuota costs the same for any number of keys: each goes on with the quota when it is
// next asked.
func (k *stateKeys) SetQuota(q *rules.Quota, now time.Duration) error {
	a, err := NewAlgorithm(q, k.custom)
	if err != nil {
		return err
	}
	next := &keysRule{quota: q, algorithm: a, family: familyOf(q)}
	if old := k.rule.Load(); old.opening.all > 0 || len(old.opening.of) > 0 {
		next.opening = old.opening.clone()
		next.opening.advance(old.quota, now)
	}
	k.rule.Store(next)
	return nil
}

// take lets a key in that was kept elsewhere.
func (k *stateKeys) take(now time.Duration, hash uint64, key []byte, o side) {
	if o.state.FreshAfter(now) == 0 {
		return
	}
	s := k.states.table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := k.states.table.find(hash, key); n != nil {
		n.kept.mu.Lock()
		defer n.kept.mu.Unlock()
		n.kept.settle()
		n.kept.put(o, now)
		n.kept.lend()
		return
	}
	o.state, _ = k.states.inherit(s, key, o.family, o.state, now)
	if t := instant(now); !k.states.table.room(s, t) {
		k.states.owe(s, k.states.hash(key), o.family, o.state, t)
		return
	}
	k.states.table.put(hash, newGuarded(hash, key, o, nil))
}
