package limiter

import (
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// shareCache caches the parts that one instance has of shared quotas, by the value of the
// shared quota. So limiters with equal quotas share an entry, and a quota that was loaded again
// finds its own. When the cache is full it is emptied.
type shareCache struct {
	parts sync.Map // map of sharedQuota to *rules.Quota
	count atomic.Int64
}

// maxShares is the maximum number of cached parts.
const maxShares = 1 << 14

type sharedQuota struct {
	whole     rules.Quota
	instances int
}

// withShare returns op with its quota reduced to the part of one of so many instances. Keep is
// reduced as well, except in a Return.
func (p *shareCache) withShare(op Op, instances int) Op {
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
