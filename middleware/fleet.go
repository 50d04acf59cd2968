package middleware

import (
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// fleet is how many instances there are, and what follows from it.
type fleet struct {
	mu     sync.Mutex // held to change what rules or instances there are
	count  atomic.Int64
	warned map[string]bool // terms of which this instance's part is less than a permit
	gone   uint64          // Overflow of terms that are no longer in use
}

// instances is how many instances there are, at least 1.
func (g *Guard) instances() int { return int(max(1, g.fleet.count.Load())) }

// SetInstances tells how many instances share the limits with scope: share, from now
// on, as redislimiter's Members counts them: each instance then has its part of them,
// and what was taken stays taken. Of each limit an instance has one permit at least;
// where its part is less than that it is logged, once. 0: not known, as if there were
// one.
func (g *Guard) SetInstances(n int) {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	if n = max(n, 0); g.fleet.count.Swap(int64(n)) == int64(n) {
		return
	}
	set := g.rules.Load()
	set.allTerms(func(_ *rule, t *terms) bool {
		if t.limit != nil && t.limit.Scope == hotparam.ScopeShare && t.quota.Load() != nil {
			part, _ := limiter.Share(&t.limit.Quota, n)
			g.setQuota(t, &part)
		}
		return true
	})
	g.warn(set)
}

// setQuota has the terms' buckets go on with another quota; those of hot keys follow
// when they are next asked.
func (g *Guard) setQuota(t *terms, q *hotparam.Quota) {
	if *t.quota.Load() == *q {
		return
	}
	t.quota.Store(q)
	now := g.opts.clock()
	var err error
	switch {
	case t.single != nil:
		err = t.single.SetQuota(q, now)
	case t.keyed != nil:
		err = t.keyed.SetQuota(q, now)
	}
	if err != nil { // a part is of the same kind as the whole
		g.opts.log.Error("an instance's part of a limit cannot be set", "limit", t.name, "error", err)
	}
}

// warn logs, once for each, the limits of which an instance's part is less than one
// permit. The caller holds the fleet's lock.
func (g *Guard) warn(set *ruleSet) {
	n := g.instances()
	set.allTerms(func(r *rule, t *terms) bool {
		if t.limit == nil || t.limit.Scope != hotparam.ScopeShare || g.fleet.warned[t.name] {
			return true
		}
		below := t.limit.Concurrency > 0 && t.limit.Concurrency < n
		if t.quota.Load() != nil {
			_, less := limiter.Share(&t.limit.Quota, n)
			below = below || less
		}
		if below {
			if g.fleet.warned == nil {
				g.fleet.warned = make(map[string]bool)
			}
			g.fleet.warned[t.name] = true
			g.opts.log.Warn("an instance's part of the limit is less than one permit, and it takes one all the same: all instances may let pass more than the limit says; use scope: exact, or a higher limit",
				"rule", r.ID, "instances", n)
		}
		return true
	})
}

// overflow is how many requests passed a rule without hot, or one with concurrency,
// for want of room.
func (g *Guard) overflow() int64 {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	n := g.fleet.gone
	for _, more := range overflows(g.rules.Load()) {
		n += more
	}
	return int64(n)
}

// overflows are those of a set's stores and semaphores.
func overflows(set *ruleSet) map[any]uint64 {
	n := make(map[any]uint64)
	set.allTerms(func(_ *rule, t *terms) bool {
		if t.keyed != nil {
			n[t.keyed] = t.keyed.Stats().Overflow
		}
		if t.permits != nil {
			n[t.permits] = t.permits.Stats().Open
		}
		return true
	})
	return n
}

// forget keeps what was counted by terms that are no longer in use. The caller holds
// the fleet's lock.
func (g *Guard) forget(old, set *ruleSet) {
	kept := overflows(set)
	for store, n := range overflows(old) {
		if _, ok := kept[store]; !ok {
			g.fleet.gone += n
		}
	}
}
