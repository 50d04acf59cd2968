package limiter

import (
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// inMemory holds the direct access of a Limiter on a Memory to its keys, without an Op.
type inMemory struct {
	memory *Memory // nil if the Limiter is on another backend
	hash   uint64  // hash of the Limiter's name
}

func inMemoryOf(backend Backend, name string) inMemory {
	m, ok := backend.(*Memory)
	if !ok || m == nil {
		return inMemory{}
	}
	return inMemory{m, m.hashOf(name)}
}

// inForce is the quota of a Limiter.
type inForce struct {
	rules.Quota
	// plan is the arithmetic of the quota's keys in a Memory, or nil before the first one was
	// asked. (Two plans of one quota are alike.)
	plan atomic.Pointer[words]
}

// quick takes n permits of a key and sets d, which must be zero. It returns false if the take
// needs an Op, for instance because the key is not known or its quota has changed.
func (l *Limiter) quick(key string, n int64, d *rules.Decision) bool {
	m, q := l.memory, l.quota.Load()
	if m == nil || q == nil {
		return false
	}
	found := m.table.findNamed(m.hash(l.hash, key), l.name, key)
	if found == nil {
		return false
	}
	kept, now := &found.kept, m.now()
	if plan := kept.lent.plan; plan == nil {
		if !kept.takeNow(now, &q.Quota, n, d) {
			return false
		}
	} else {
		if plan != q.plan.Load() && !q.adopt(plan) {
			return false
		}
		v, ok := kept.lent.takeTokens(plan, instant(now), m.grain, n)
		if !ok {
			return false
		}
		plan.decide(v, d)
	}
	d.Rule = l.name
	m.table.tend(now)
	return true
}

// adopt sets q's plan to plan if both have the same quota, and reports whether they have.
func (q *inForce) adopt(plan *words) bool {
	same := plan.quota == q.Quota
	if same && q.plan.Load() == nil {
		q.plan.Store(plan)
	}
	return same
}
