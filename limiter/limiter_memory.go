package limiter

import (
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// inMemory is what a Limiter on a Memory keeps to find its keys there without an Op.
type inMemory struct {
	memory *Memory // nil: it is on another backend
	hash   uint64  // of its name
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
	// plan is the arithmetic of the keys under it in a Memory; nil until one was asked. (Two
	// plans of one quota are alike.)
	plan atomic.Pointer[words]
}

// quick takes n of a key and sets d, which is zero. It returns false if that takes an Op: the
// key is not known, say, or its quota has changed.
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
		v, ok := kept.lent.take(plan, instant(now), m.grain, n)
		if !ok {
			return false
		}
		plan.decide(v, d)
	}
	d.Rule = l.name
	m.table.tend(now)
	return true
}

// adopt makes plan that of q if it is of the same quota, and reports whether it is.
func (q *inForce) adopt(plan *words) bool {
	same := plan.quota == q.Quota
	if same && q.plan.Load() == nil {
		q.plan.Store(plan)
	}
	return same
}
