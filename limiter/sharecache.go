package limiter

import (
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// shareCache remembers the quotas that one instance has of those that it shares, by the value of
// the shared one: limiters with equal quotas share an entry, and a quota that was loaded again
// finds its own. When it is full it is emptied.
type shareCache struct {
	parts sync.Map // of *rules.Quota, by sharedQuota
	count atomic.Int64
}

// maxShares is how many parts are remembered.
const maxShares = 1 << 14

type sharedQuota struct {
	whole     rules.Quota
	instances int
}

// of returns op as one of so many instances asks it of itself.
func (p *shareCache) of(op Op, instances int) Op {
	if op.Quota == nil || instances < 2 {
		return op
	}
	if op.Kind != Return {
		op.Keep /= int64(instances)
	}
	var key any = sharedQuota{*op.Quota, instances}
	part, known := p.parts.Load(key)
	if !known {
		if p.count.Add(1) > maxShares {
			p.parts.Clear()
			p.count.Store(1)
		}
		made, _ := Share(op.Quota, instances)
		part, _ = p.parts.LoadOrStore(key, &made)
	}
	op.Quota = part.(*rules.Quota)
	return op
}
