package limiter

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// shareCache remembers the quotas that one instance has of those that it shares, by the value
// of the shared one: limiters with equal quotas share an entry, and a quota that was
// loaded again finds its own. It is a table of a fixed size in which each quota has four
// places, so that a look-up reads at most four words, takes no lock and allocates nothing.
// A map that is copied for each new quota was rejected: with n limiters it costs n² until
// all are known, and for ever where they are more than it holds.
type shareCache struct {
	once  sync.Once
	seed  maphash.Seed
	table atomic.Pointer[shareTable]
}

const (
	shareSets = 4096 // a power of two
	shareWays = 4
)

type shareTable [shareSets][shareWays]atomic.Pointer[cachedShare]

// cachedShare is not changed once made.
type cachedShare struct {
	whole     rules.Quota
	instances int
	quota     rules.Quota
}

// of returns op as one of so many instances asks it of itself.
func (p *shareCache) of(op Op, instances int) Op {
	if op.Quota == nil || instances < 2 {
		return op
	}
	if op.Kind != Return {
		op.Keep /= int64(instances)
	}
	op.Quota = p.quota(op.Quota, instances)
	return op
}

// quota returns the part of q that one of so many instances has.
func (p *shareCache) quota(q *rules.Quota, instances int) *rules.Quota {
	p.once.Do(func() {
		p.seed = maphash.MakeSeed()
		p.table.Store(new(shareTable))
	})
	hash := maphash.Comparable(p.seed, *q)
	set := &p.table.Load()[hash%shareSets]
	place := &set[hash>>32%shareWays] // to be replaced, unless one is free or outdated
	for i := range set {
		known := set[i].Load()
		switch {
		case known == nil:
			place = &set[i]
		case known.whole != *q:
		case known.instances == instances:
			return &known.quota
		default: // of another number of instances
			place = &set[i]
		}
	}
	share, _ := Share(q, instances)
	made := &cachedShare{whole: *q, instances: instances, quota: share}
	place.Store(made)
	return &made.quota
}
