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
	bucket          atomic.Pointer[limiter.TokenBucket] // nil: none yet, or watched only
	passed, refused atomic.Int64
	origins         origins
}

// hold makes what a key that became hot is held to: by the rule as this process
// knows it.
func (g *Guard) hold(h hotparam.Hot, old *held, had bool) *held {
	if had {
		return old
	}
	fresh := &held{}
	if r := g.rules.byID(h.Rule); r != nil && r.except == nil {
		fresh.bucketFor(&r.terms)
	}
	return fresh
}

// bucketFor is the key's bucket by the terms that hold for it, which are always
// the same; nil: it is watched only. Where a rule has exceptions it is made for
// the first request that comes: that one's parameters tell, while a key's text
// may have been cut.
func (h *held) bucketFor(t *terms) *limiter.TokenBucket {
	if b := h.bucket.Load(); b != nil || t.limit == nil {
		return b
	}
	b, err := limiter.NewTokenBucket(t.limit.Rate, t.limit.Burst)
	if err == nil { // as compile has seen
		h.bucket.CompareAndSwap(nil, b)
	}
	return h.bucket.Load()
}

func (h *held) timeToFull(now time.Duration) time.Duration {
	if b := h.bucket.Load(); b != nil {
		return b.TimeToFull(now)
	}
	return 0
}
