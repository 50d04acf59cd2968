package middleware

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/middleware/internal/backoff"
	"github.com/hotparam/hotparam/middleware/internal/origins"
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
	origins         origins.Sample
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
	return &hotBucket{Bucket: b, quota: quota, limit: spec.name, interval: backoff.Interval(quota, 1)}
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
	since  time.Time          // when it became hot, as published
	local  bool               // whether only this instance has found it hot
	before published.Outcomes // the state's outcomes when it became hot
}

// beginHeat records that the key is hot by this entry. The entry of a key that was hot here alone
// continues its time. It is called before requests see the entry.
func (h *hotState) beginHeat(hot *published.Hot) {
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
func (h *hotState) outcomesEver() published.Outcomes {
	return published.Outcomes{
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
func (h *hotState) onHot() published.OnHotCounts {
	n := published.OnHotCounts{Stored: h.outcomes[Stored].Load(), Joined: h.outcomes[Joined].Load(), Alone: h.outcomes[Alone].Load()}
	if reason := h.aloneFor.Load(); reason != nil {
		n.AloneFor = *reason
	}
	return n
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

// hotStock is the stock of a hot key, and the name of its limit.
type hotStock struct {
	classes []*fleet.Stock // by class of priority
	name    string
}

// stockFor returns the stock of a hot key for requests of a class of a limit.
func (h *hotState) stockFor(f *fleet.Fleet, spec *limitSpec, class int, key func() string) *fleet.Stock {
	quota := spec.quota.Load()
	for {
		s := h.stock.Load()
		if s != nil && s.name == spec.name && len(s.classes) == spec.limit.Priority.Classes() {
			stock := s.classes[class]
			if stock.Quota() != quota {
				stock.SetQuota(quota)
			}
			return stock
		}
		made := f.Stocks(fleet.StockConfig{
			Name: spec.name, Key: key(), Quota: quota, Outage: spec.whenAway(), Owing: spec.unit != rules.Requests,
		}, spec.limit.Priority.Classes())
		if h.stock.CompareAndSwap(s, &hotStock{made, spec.name}) {
			return made[class]
		}
	}
}

// admittedSamples are totals of a hot key's admissions, the oldest first.
type admittedSamples []admittedSample

type admittedSample struct {
	when  time.Time
	total int64
	onHot published.OnHotCounts
	ever  published.Outcomes
}

// outcomeCounts count the requests of hot keys by how they were answered.
type outcomeCounts [outcomes]atomic.Int64

// sharedKey is a hot key whose requests are answered together, in one version of the rules. It is
// the From of decisions with ReasonShared.
type sharedKey struct {
	rule  *sharedRule
	state *hotState
	text  string
}

// HotHeader is the header of an [rules.Answer] to a request of a hot key that may be answered
// from a cache; see [Steps].
const HotHeader = "X-Hotparam-Hot"

// Answer marks the request as hot, for a gateway that has a cache.
func (*sharedKey) Answer(rules.Decision) rules.Answer {
	return rules.Answer{Header: map[string][]string{HotHeader: {"1"}}}
}

// sharedFor returns the key for requests that are answered by this version of the rule.
func (h *hotState) sharedFor(r *sharedRule, key rules.Key) *sharedKey {
	s := h.shared.Load()
	if s == nil || s.rule != r {
		s = &sharedKey{rule: r, state: h, text: key.String()}
		h.shared.Store(s)
	}
	return s
}

// decide sets the decision on a request that is answered together with others, and counts it.
func (s *sharedKey) decide(d *rules.Decision, shard uint32) {
	d.Allowed, d.Reason, d.Rule, d.From = true, rules.ReasonShared, s.rule.ID, s
	s.rule.decisions.of[rules.ReasonShared].addOne(shard)
}
