package middleware

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/middleware/internal/backoff"
	"github.com/hotparam/hotparam/middleware/internal/holding"
	"github.com/hotparam/hotparam/rules"
)

// limitSpec is the limit of a rule, or of one of its exceptions, with the buckets and
// permits of its keys. Hot keys have their own buckets; see hotState.
type limitSpec struct {
	limit *rules.Limit // nil if there is none
	unit  rules.Unit
	// name identifies the limit to a backend, and across versions of the rules.
	name       string
	algorithms map[rules.Algorithm]limiter.Algorithm // by WithAlgorithm
	// quota is the limit's quota, or this instance's part of it. Nil means any rate.
	quota atomic.Pointer[rules.Quota]
	// hash identifies the limit's only key, if the rule makes no keys.
	hash     uint64
	meanCost atomic.Int64 // mean of recent requests, if the rule counts costs; 0 if unknown
	headers  headers

	single *limiter.Bucket // for a rule with neither hot nor keys; nil otherwise
	// keyed is for a rule with keys but without hot. A rule that gets hot later keeps it: the
	// tokens that a key took then count in addition to its hot key's bucket.
	keyed   *limiter.Keys
	permits *semaphore.Memory // nil if any number may be served at a time
	kept    stores            // the three above, including the ones that the limit does not use now
	unseen  atomic.Pointer[unseen]

	holders   int             // the most instances that hold permits of it
	byBackend bool            // whether the backend decides; see isDecidedByBackend
	decisions *decisionCounts // the rule's counters
}

// stores hold the used part of a limit. They last from one version of the rules to the next,
// even through versions that do not use them.
type stores struct {
	single  *limiter.Bucket
	keyed   *limiter.Keys
	permits *semaphore.Memory
	hold    *holding.Holding // nil if the limit was never shared; guarded by sharing.mu
}

// isShared reports whether each instance has a part of the limit's rate.
func (s *limitSpec) isShared() bool {
	return s.limit != nil && s.limit.Scope == rules.ScopeShare && s.quota.Load() != nil
}

func (s *limitSpec) waits() bool { return s.limit.Mode == rules.ModeWait }

// isQuick reports whether limitPlain can hold a key to the limit: the key's bucket alone
// decides at once, and a request over the limit is refused.
func (s *limitSpec) isQuick() bool {
	return s.limit != nil && s.limit.Mode == rules.ModeLimit && !s.limit.Shape && s.limit.Priority == nil && !s.byBackend &&
		s.limit.Concurrency == 0 && s.keyed == nil
}

// needsKey reports whether the backend or the semaphore will need the key's text.
func (s *limitSpec) needsKey() bool { return s.permits != nil || s.byBackend && s.quota.Load() != nil }

// whenAway returns the limit's mode while the backend is unavailable.
func (s *limitSpec) whenAway() rules.OutagePolicy {
	return cmp.Or(s.limit.Outage, rules.OutageLocal)
}

// newBucket makes a bucket of one key.
func (s *limitSpec) newBucket(quota *rules.Quota) (*limiter.Bucket, error) {
	return limiter.NewBucket(quota, s.algorithms)
}

// setQuota changes the quota of the limit's buckets. A hot key's bucket changes its quota when
// it is next asked.
func (s *limitSpec) setQuota(quota *rules.Quota, now time.Duration) error {
	switch {
	case s.single != nil:
		return s.single.SetQuota(quota, now)
	case s.keyed != nil:
		return s.keyed.SetQuota(quota, now)
	}
	return nil
}

// addDebt adds a debt to the keys of the limit, except hot ones.
func (s *limitSpec) addDebt(debt limiter.Owing, now time.Duration) {
	switch {
	case debt.All == 0 && len(debt.Of) == 0:
	case s.single != nil:
		s.single.Owe(debt.All, now)
	case s.keyed != nil:
		s.keyed.Owe(debt, now)
	}
}

// interval returns the time in which the limit that denied d lets one request of this
// instance pass. If a backend decides, all instances refuse clients of the one limit, and each
// assigns places of its own, so the places are as many times farther apart.
//
// For permits it is an estimate. It is RetryAfter, unless that is unknown, or longer than the
// estimate of a limit with a waiting line, for which RetryAfter covers all who wait. Then it is
// the interval that results if each permit is held for a second.
func (s *limitSpec) interval(d *rules.Decision, instances int) time.Duration {
	sharers := 1.0
	if s.byBackend {
		sharers = float64(instances)
	}
	if quota := s.quota.Load(); quota != nil && d.Reason != rules.ReasonBusy {
		return backoff.Interval(quota, float64(max(1, s.meanCost.Load()))*sharers)
	}
	each := float64(d.RetryAfter)
	if estimate := float64(time.Second) / float64(max(1, s.limit.Concurrency)); each == 0 || s.waits() && each > estimate {
		each = estimate
	}
	return backoff.Whole(each * sharers)
}

// learnCost updates the mean cost of a request, which sets how far apart refused clients
// retry. A concurrent call may be lost.
func (s *limitSpec) learnCost(n int64) {
	const smoothing = 8 // a request moves the mean by an eighth of its distance
	mean := s.meanCost.Load()
	if mean == 0 {
		mean = n
	}
	s.meanCost.Store(mean + (n-mean)/smoothing)
}

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
