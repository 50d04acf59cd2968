package middleware

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// hotState is the guard's state of a hot key, which is published or was marked as hot by this
// instance alone ([hotset.Set.Mark]). A key that stays hot, or soon becomes hot again, keeps it.
type hotState struct {
	id              uint64                    // the key's limiter.KeyID
	bucket          atomic.Pointer[hotBucket] // nil if there is none yet, or none is needed
	stock           atomic.Pointer[hotStock]  // nil if there is none yet, or none is needed
	passed, refused atomic.Int64
	exempt          atomic.Int64 // part of passed: requests that the key's limit was not asked about
	waited          atomic.Int64 // part of passed: requests that waited for the key's limit
	refusedTold     int64        // refused at the last call of Guard.yieldUsage
	charged         atomic.Int64 // costs charged to the key's limit
	made            time.Time
	shared          atomic.Pointer[sharedKey] // nil unless the rule has on_hot
	outcomes        outcomeCounts             // requests of a rule with on_hot, by how they were answered
	aloneFor        atomic.Pointer[string]    // reason of the last one that could not be answered with others
	heat            atomic.Pointer[heat]
	admitted        admittedSamples
	reported, told  int64 // number of the last report that had the key, and the requests in it
	origins         originSample
}

// hotBucket is a bucket with the quota that it was last given.
type hotBucket struct {
	*limiter.Bucket
	quota *rules.Quota
	limit string // the limit's name
	// interval is the time between requests that the quota lets pass; refused requests use it.
	interval time.Duration
}

func newHotBucket(b *limiter.Bucket, spec *limitSpec, quota *rules.Quota) *hotBucket {
	return &hotBucket{Bucket: b, quota: quota, limit: spec.name, interval: quotaInterval(quota, 1)}
}

// record counts a request that passed or was refused. A nil hotState counts nothing.
func (h *hotState) record(allowed bool) {
	switch {
	case h == nil:
	case allowed:
		h.passed.Add(1)
	default:
		h.refused.Add(1)
	}
}

// recordExempt counts a request that passed without asking the key's limit.
func (h *hotState) recordExempt() {
	h.exempt.Add(1)
	h.passed.Add(1)
}

// revoke changes a request that was recorded as passed into a refused one. A nil hotState
// counts nothing.
func (h *hotState) revoke() {
	if h != nil {
		h.passed.Add(-1)
		h.refused.Add(1)
	}
}

// heat is a time for which a key is hot.
type heat struct {
	since  time.Time      // when it became hot, as published
	local  bool           // whether only this instance has found it hot
	before rules.Outcomes // the state's outcomes when it became hot
}

// beginHeat records that the key is hot by this entry. The entry of a key that was hot here alone
// continues its time. It is called before requests see the entry.
func (h *hotState) beginHeat(hot *rules.Hot) {
	switch now := h.heat.Load(); {
	case now == nil:
		h.heat.Store(&heat{since: hot.Since, local: hot.Local})
	case hot.Local || now.since.Equal(hot.Since):
	case now.local:
		h.heat.Store(&heat{since: hot.Since, before: now.before})
	default:
		h.heat.Store(&heat{since: hot.Since, before: h.outcomesEver()})
	}
}

// outcomesEver returns the outcomes since the state was made.
func (h *hotState) outcomesEver() rules.Outcomes {
	return rules.Outcomes{
		Passed: h.passed.Load(), Refused: h.refused.Load(), Waited: h.waited.Load(),
		Served: h.outcomes[Stored].Load() + h.outcomes[Joined].Load(),
	}
}

// recordWait counts a request that has passed after a wait. A nil hotState counts nothing.
func (h *hotState) recordWait() {
	if h != nil {
		h.waited.Add(1)
	}
}

// recordOutcome counts a request that was answered together with others, or should have been.
func (h *hotState) recordOutcome(o Outcome, reason string) {
	h.outcomes[o].Add(1)
	if o != Alone {
		return
	}
	if last := h.aloneFor.Load(); last == nil || *last != reason {
		why := reason // so that only this allocates
		h.aloneFor.Store(&why)
	}
}

// onHot returns the key's outcomes.
func (h *hotState) onHot() rules.OnHotCounts {
	n := rules.OnHotCounts{Stored: h.outcomes[Stored].Load(), Joined: h.outcomes[Joined].Load(), Alone: h.outcomes[Alone].Load()}
	if reason := h.aloneFor.Load(); reason != nil {
		n.AloneFor = *reason
	}
	return n
}

// newHotState returns the key's old state if it exists, or a new one with a bucket by this
// process's rules.
func (g *Guard) newHotState(h rules.Hot, old *hotState, exists bool) *hotState {
	if !exists {
		old = g.firstHotState(&h)
	}
	old.beginHeat(&h)
	return old
}

// firstHotState returns the state of a key that has none in the hot set.
func (g *Guard) firstHotState(h *rules.Hot) *hotState {
	r := g.rules.Load().byID(h.Rule)
	if r != nil && r.heated != nil {
		if state := r.heated[h.Key.String()]; state != nil {
			return state // from when another version of the rule had hot
		}
	}
	fresh := &hotState{id: limiter.KeyID([]byte(h.Key.String())), made: time.Now()}
	if r != nil && r.except == nil && r.spec.limit != nil {
		fresh.bucketFor(r.spec, g.opts.clock) // makes the bucket, ahead of the first request
	}
	return fresh
}

// bucketFor returns the key's bucket for its limit, or nil if the limit has none. The limit
// stays the same until the rules change. If the rule has exceptions, the first request makes
// the bucket: its parameters determine the limit, since the key's text may have been cut.
func (h *hotState) bucketFor(spec *limitSpec, clock func() time.Duration) *limiter.Bucket {
	quota := spec.quota.Load()
	if quota == nil || spec.byBackend {
		return nil
	}
	return h.bucketUnder(quota, spec, clock).Bucket
}

// bucketUnder returns the key's bucket after setting this quota of the limit.
func (h *hotState) bucketUnder(quota *rules.Quota, spec *limitSpec, clock func() time.Duration) *hotBucket {
	b := h.bucket.Load()
	if b == nil || b.quota != quota {
		h.changeBucket(b, spec, quota, clock)
		b = h.bucket.Load()
	}
	return b
}

// changeBucket makes the first bucket, or sets another quota on b, the present one. Of several
// requests that call it with the same b, one changes the bucket. The permits taken stay taken.
func (h *hotState) changeBucket(b *hotBucket, spec *limitSpec, quota *rules.Quota, clock func() time.Duration) {
	present := b
	if b != nil {
		present = newHotBucket(b.Bucket, spec, quota)
		if !h.bucket.CompareAndSwap(b, present) || b.SetQuota(quota, clock()) == nil {
			return
		}
	}
	made, err := spec.newBucket(quota)
	if err != nil { // impossible, since compile has made such a bucket
		panic(err)
	}
	spec.unseen.Load().chargeNewBucket(made, h.id)
	h.bucket.CompareAndSwap(present, newHotBucket(made, spec, quota))
}

// timeToFull returns the time until the key's bucket is full again.
func (h *hotState) timeToFull(now time.Duration) time.Duration {
	if b := h.bucket.Load(); b != nil {
		return b.FreshAfter(now)
	}
	return 0
}
