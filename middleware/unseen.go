package middleware

import (
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/middleware/internal/holding"
)

// unseen is the debt, since an instant, of keys that become hot later. A nil unseen is no debt.
type unseen struct {
	since time.Duration
	all   float64
	byKey map[uint64]float64 // replaces all, by limiter.KeyID
}

// withDebt returns the debts of u plus debt, as of now.
func (u *unseen) withDebt(debt *limiter.Owing, hold *holding.Holding, now time.Duration) *unseen {
	next := &unseen{since: now, all: hold.Missing(now), byKey: make(map[uint64]float64)}
	before := unseen{}
	if u != nil {
		before = *u
	}
	earned := hold.Earned(max(0, now-before.since), true)
	add := func(id uint64, owed float64) {
		if owed = max(0, owed-earned) + debt.All + debt.Of[id]; owed > next.all {
			next.byKey[id] = owed
		}
	}
	for id, owed := range before.byKey {
		add(id, owed)
	}
	for id := range debt.Of {
		if _, known := before.byKey[id]; !known {
			add(id, before.all)
		}
	}
	return next
}

// chargeNewBucket adds the key's debt to its new bucket.
func (u *unseen) chargeNewBucket(b *limiter.Bucket, id uint64) {
	if u == nil {
		return
	}
	owed, ok := u.byKey[id]
	if !ok {
		owed = u.all
	}
	if owed > 0 {
		b.Owe(owed, u.since)
	}
}
