package middleware

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
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

// specBuilder makes the limits of a version of the rules, with the state of the limits
// that they replace.
type specBuilder struct {
	opts      *options
	maxKeys   int
	redaction *rules.Redaction
	// decisionsOf returns the counters of a rule.
	decisionsOf func(rule string) *decisionCounts
	instances   int
	old         map[string]*limitSpec           // by name, including removed limits
	permits     map[string]*semaphore.Memory    // by rule; its exceptions share them
	adopt       []func(now time.Duration) error // to be called once all limits are made
}

var (
	errNoBackend   = errors.New("limit.scope fleet or exact: the guard has no backend: give one by WithBackend")
	errNoSemaphore = errors.New("limit.scope fleet or exact with concurrency: the guard has no semaphore: give one by WithSemaphore")
)

// newSpec makes a limit with its permits and, unless the rule has hot, its buckets.
func (b *specBuilder) newSpec(r *rule, l *rules.Limit, name string) (*limitSpec, error) {
	l = b.withScope(r, l)
	s := &limitSpec{
		limit: l, unit: r.Count, name: name, algorithms: b.opts.algorithms,
		hash: rules.Hash([]byte(name)), headers: b.opts.headers, decisions: b.decisionsOf(r.ID),
	}
	if old := b.old[name]; old != nil {
		s.meanCost.Store(old.meanCost.Load())
		s.kept = old.kept
		s.unseen.Store(old.unseen.Load())
	}
	s.kept.permits = b.permits[r.ID]
	if l == nil {
		return s, nil
	}
	s.holders, s.byBackend = holders(r, l), b.isDecidedByBackend(s)
	if l.Concurrency != 0 {
		if err := b.makePermits(s, r); err != nil {
			return nil, err
		}
	}
	if l.Burst == rules.Unlimited || l.Rate.IsZero() {
		return s, nil
	}
	if l.Algorithm.Custom() && s.algorithms[l.Algorithm] == nil {
		return nil, fmt.Errorf("limit.algorithm %q: the guard has none of this name: give it by WithAlgorithm", l.Algorithm)
	}
	s.quota.Store(b.quotaOf(s))
	if s.isShared() {
		b.continueHolding(s)
	}
	switch {
	case !s.byBackend:
		return s, b.makeBuckets(s, r)
	case b.opts.backend == nil:
		return nil, errNoBackend
	}
	return s, nil
}

// withScope returns l with the scope that it has by default, if the backend lends permits, and
// the semaphore does, if it needs one. l may be nil.
func (b *specBuilder) withScope(r *rule, l *rules.Limit) *rules.Limit {
	if l == nil || l.Scope != "" || r.ScopeOf(l) != rules.ScopeFleet {
		return l
	}
	if lenderOf(b.opts.backend) == nil && l.HasNumber() { // one without needs a semaphore alone
		return l
	}
	if l.Concurrency != 0 && b.opts.semaphore == nil {
		return l
	}
	if b.opts.shadow && r.Count != rules.Requests {
		return l // a shadow holds no permits, and costs are charged to permits that are held
	}
	scoped := *l
	scoped.Scope = rules.ScopeFleet
	return &scoped
}

// quotaOf returns the limit's quota, or this instance's part of it. If the quota has not
// changed, the pointer has not either, so that buckets keep theirs.
func (b *specBuilder) quotaOf(s *limitSpec) *rules.Quota {
	instances := 1
	if s.limit.Scope == rules.ScopeShare {
		instances = b.instances
	}
	quota, _ := limiter.Share(&s.limit.Quota, instances)
	if old := b.old[s.name]; old != nil {
		if q := old.quota.Load(); q != nil && *q == quota {
			return q
		}
	}
	return &quota
}

// continueHolding makes the limit continue the holding of its predecessor.
func (b *specBuilder) continueHolding(s *limitSpec) {
	b.adopt = append(b.adopt, func(now time.Duration) error {
		if s.kept.hold == nil {
			s.kept.hold = holding.New(&s.limit.Quota, b.instances)
			return nil
		}
		debt := limiter.Owing{All: s.kept.hold.Resize(&s.limit.Quota, b.instances, now)}
		s.unseen.Store(s.unseen.Load().withDebt(&debt, s.kept.hold, now))
		s.addDebt(debt, now)
		return nil
	})
}

// makePermits makes the semaphore of a limit with concurrency, or keeps the old one, to which
// permits in use will be returned. A key's permits are the same whether an exception matches
// it or not. Keys that are held by their cost share those of the guard.
func (b *specBuilder) makePermits(s *limitSpec, r *rule) error {
	if s.limit.Scope.InRedis() && b.opts.semaphore == nil {
		return errNoSemaphore
	}
	if s.limit.Concurrency == rules.AutoConcurrency {
		return nil
	}
	if s.kept.permits == nil {
		s.kept.permits = semaphore.New(semaphore.Config{})
		b.permits[r.ID] = s.kept.permits
	}
	s.permits = s.kept.permits
	return nil
}

// makeBuckets makes the buckets of a rule without hot, or keeps the old ones, which get their
// new quota once all rules are made. For a rule with hot it only checks that buckets can be
// made, and keeps the buckets that its keys had before.
func (b *specBuilder) makeBuckets(s *limitSpec, r *rule) error {
	quota := s.quota.Load()
	fresh := func() (err error) {
		if r.keyless() {
			s.kept.single, err = s.newBucket(quota)
			s.single = s.kept.single
		} else {
			s.kept.keyed, err = limiter.NewKeys(quota, b.maxKeys, s.algorithms)
			s.keyed = s.kept.keyed
		}
		return err
	}
	if r.keyless() {
		s.single = s.kept.single
	} else {
		s.keyed = s.kept.keyed
	}
	switch {
	case s.single != nil || s.keyed != nil:
		b.adopt = append(b.adopt, func(now time.Duration) error {
			if s.setQuota(quota, now) == nil {
				return nil
			}
			return fresh()
		})
	case len(r.Hot) == 0:
		return fresh()
	}
	_, err := s.newBucket(quota)
	return err
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

// exceptionName returns the name of an exception's limit, as the backend gets it.
func (b *specBuilder) exceptionName(r *rule, x *rules.Exception) string {
	name := strings.Builder{}
	name.WriteString(r.ID)
	for i, v := range x.Values {
		sep := byte('&')
		if i == 0 {
			sep = '?'
		}
		name.WriteByte(sep)
		value := v.Value
		if p := v.Param(); b.redaction.Redacts(p.Source, p.Name) {
			p.Value = value
			value = string(keytext.NewRedactor(b.redaction).Append(nil, p))
		}
		name.WriteString(v.Name + "=" + value)
	}
	return name.String()
}
