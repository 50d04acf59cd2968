package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Keys holds each of many keys to one quota, in memory. It is safe for concurrent use. The
// argument now is as for [Bucket], and the same quotas need a lock.
//
// Only a key in its initial state is ever dropped: however many keys come, none gets a fresh
// burst by being forgotten. A key is in use until all its permits are back, so maxKeys should
// be the number of keys expected within that time. If the table is full of keys in use, a new
// key takes the place of one of them, as with [Memory].
type Keys struct {
	table  *table
	custom map[rules.Algorithm]Algorithm
	rule   atomic.Pointer[keysRule]
	mu     sync.Mutex // held while the rule changes
}

// keysRule is the quota of all keys, with the debts of unknown keys.
type keysRule struct {
	heldQuota
	opening opening
}

func (r *keysRule) openingState(a Algorithm, q *rules.Quota, key []byte) State {
	return r.opening.state(a, q, key)
}

// Stats are the counters of a [Keys] or a [Memory].
type Stats struct {
	Keys    int64  // keys held now
	Evicted uint64 // keys dropped in their initial state
	// Displaced counts keys that were evicted while they owed something, since the table was
	// full.
	Displaced uint64
	// Inherited counts the asks of new keys that began with a debt. The debt is their own, from
	// before they were displaced, or rarely that of another key.
	Inherited uint64
}

// NewKeys returns Keys for up to maxKeys keys at a time, 1 to 16,777,216. Custom holds
// algorithms of your own, by name; it may be nil.
func NewKeys(q *rules.Quota, maxKeys int, custom map[rules.Algorithm]Algorithm) (*Keys, error) {
	held, err := newHeldQuota(q, custom)
	if err != nil {
		return nil, err
	}
	s, err := newTable(maxKeys)
	if err != nil {
		return nil, err
	}
	k := &Keys{table: s, custom: custom}
	k.rule.Store(&keysRule{heldQuota: held})
	return k, nil
}

// Do executes ask on the key at now. The hash is [rules.Hash] of key. It only finds the key,
// whose bytes decide. They are copied if the key is new.
func (k *Keys) Do(now time.Duration, hash uint64, key []byte, ask Request) (r Result) {
	rule := k.rule.Load()
	if n := k.table.findNode(hash, key); n != nil {
		if rule.plan != nil && n.kept.lent.plan == rule.plan && n.kept.lent.do(rule.plan, instant(now), clockGrain, &ask, &r) {
			r.keepState(rule.family)
			k.table.tend(now)
			return r
		}
		found, err := n.kept.do(now, rule.quota, maker{algorithms: rule, table: k.table}, &ask, &r)
		if found == keyCalm {
			k.table.renew(hash, n, rule)
		}
		if found != keyDropped {
			k.table.tend(now)
			return k.result(rule, &ask, &r, err)
		}
	}
	if rule.quota.Burst == rules.Unlimited && (ask.Kind < Return || k.table.findNode(hash, key) == nil) {
		return unlimited{}.Do(now, ask)
	}
	r, err := k.table.enter(now, hash, rule.quota, maker{algorithms: rule, key: key}, &ask)
	return k.result(rule, &ask, &r, err)
}

func (k *Keys) result(rule *keysRule, ask *Request, r *Result, err error) Result {
	if err != nil { // a custom algorithm that makes no state
		return open(ask)
	}
	r.keepState(rule.family)
	return *r
}

// Stats returns a snapshot of the counters.
func (k *Keys) Stats() Stats { return k.table.stats() }

// Sweep drops all keys in their initial state at once. It is not needed, since every call
// sweeps a little.
func (k *Keys) Sweep(now time.Duration) { k.table.sweepAll(instant(now)) }

// SetQuota replaces the quota at now, like that of [Bucket]. It takes a lock for each key. Each
// key has earned at the old rate until now, and earns at the new one from now on. A key whose
// algorithm changes switches when it is next asked.
func (k *Keys) SetQuota(q *rules.Quota, now time.Duration) error {
	held, err := newHeldQuota(q, k.custom)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.rule.Load()
	next := &keysRule{held, old.opening.clone()}
	next.opening.advance(old.quota, now)
	k.rule.Store(next)
	k.table.eachKept(func(_ *keyNode, g *keyStates) {
		if g.family == next.family {
			_ = g.setQuota(now, next.quota, maker{algorithms: next, table: k.table})
		}
	})
	if next.family == old.family && bucketed(next.quota) {
		k.table.eachDebts(func(d *debts) { d.rescale(next.family, next.quota.Rate.Interval(), instant(now)) })
	}
	return nil
}

// Owe makes all keys owe more permits from now on, or fewer below zero. This includes keys that
// are not known yet, less the permits that they have earned before they become known. See
// package holding. Owe takes a lock for each key.
func (k *Keys) Owe(owing Owing, now time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	rule := *k.rule.Load()
	rule.opening = rule.opening.clone()
	rule.opening.advance(rule.quota, now)
	before := rule.opening
	rule.opening.add(rule.quota, &owing, now)
	k.rule.Store(&rule)
	k.table.eachKept(func(n *keyNode, g *keyStates) {
		permits := owing.forKey([]byte(n.key()))
		ask := before.request(rule.quota, permits, now)
		g.sides.owePermits(now, rule.quota, maker{algorithms: &rule}, &ask, permits)
	})
}

// Spent returns the number of permits missing at now for each known key, and for the unknown
// keys that owe more than other unknown ones, by [KeyID]. All is false if further keys owe
// something, since the table was full.
func (k *Keys) Spent(now time.Duration) (permits map[uint64]float64, all bool) {
	rule := k.rule.Load()
	o := rule.opening.clone()
	o.advance(rule.quota, now)
	spent := make(map[uint64]float64, len(o.byKey))
	for id, n := range o.byKey {
		spent[id] = n
	}
	k.table.eachKept(func(n *keyNode, g *keyStates) {
		spent[KeyID([]byte(n.key()))] = g.sides.spent(now, rule.quota, maker{algorithms: rule})
	})
	return spent, k.table.indebted(instant(now)) == 0
}
