package middleware

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// held is what the request path keeps for a hot key. A key that stays hot, or
// comes back soon, keeps what it had, whoever says that it is hot.
type held struct {
	bucket          atomic.Pointer[heldBucket] // nil: none yet, or there is none here
	passed, refused atomic.Int64
	origins         origins
}

// heldBucket is a bucket with the quota that it was last given.
type heldBucket struct {
	limiter.Bucket
	quota *hotparam.Quota
}

// note counts what became of a request; nil counts nothing.
func (h *held) note(allowed bool) {
	switch {
	case h == nil:
	case allowed:
		h.passed.Add(1)
	default:
		h.refused.Add(1)
	}
}

// hold makes what a key that became hot is held to: by the rule as this process
// knows it.
func (g *Guard) hold(h hotparam.Hot, old *held, had bool) *held {
	if had {
		return old
	}
	fresh := &held{}
	if r := g.rules.Load().byID(h.Rule); r != nil && r.except == nil && r.terms.limit != nil {
		fresh.bucketFor(r.terms, g.opts.clock)
	}
	return fresh
}

// bucketFor is the key's bucket by the terms that hold for it, which are always
// the same until the rules change; nil: there is none here. Where a rule has
// exceptions it is made for the first request that comes: that one's parameters
// tell, while a key's text may have been cut.
func (h *held) bucketFor(t *terms, clock func() time.Duration) limiter.Bucket {
	quota := t.quota.Load()
	if quota == nil || t.exact() {
		return nil
	}
	b := h.bucket.Load()
	if b == nil || b.quota != quota {
		h.change(b, t, quota, clock)
		b = h.bucket.Load()
	}
	return b.Bucket
}

// change makes the first bucket, or gives the one that there is another quota.
func (h *held) change(b *heldBucket, t *terms, quota *hotparam.Quota, clock func() time.Duration) {
	if b != nil && h.bucket.CompareAndSwap(b, &heldBucket{b.Bucket, quota}) && b.SetQuota(quota, clock()) == nil {
		return
	}
	made, err := t.newBucket(quota)
	if err != nil { // compile has made one such
		panic(err)
	}
	if b == nil {
		h.bucket.CompareAndSwap(nil, &heldBucket{made, quota})
	} else if now := h.bucket.Load(); now.Bucket == b.Bucket && now.quota == quota {
		h.bucket.CompareAndSwap(now, &heldBucket{made, quota})
	}
}

func (h *held) timeToFull(now time.Duration) time.Duration {
	if b := h.bucket.Load(); b != nil {
		return b.FreshAfter(now)
	}
	return 0
}
