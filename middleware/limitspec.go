package middleware

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/holding"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// limitSpec is the limit of a rule, or of one of its exceptions, with the buckets and
// permits of its keys. Hot keys have buckets of their own; see hotState.
type limitSpec struct {
	limit *rules.Limit // nil if there is none
	unit  rules.Unit
	// name identifies the limit to a backend, and from one version of the rules to the
	// next.
	name       string
	algorithms map[rules.Algorithm]limiter.Algorithm // the user's
	// quota is the limit's quota, or this instance's part of it. Nil means any rate.
	quota atomic.Pointer[rules.Quota]
	// hash identifies the limit's one key, if the rule has none.
	hash     uint64
	meanCost atomic.Int64 // of recent requests, if the rule counts costs; 0 is unknown
	headers  headers

	single *limiter.Bucket // of a rule with neither hot nor a key; nil if it is not here
	// keyed is of a rule with a key but not hot. A rule that had no hot before keeps it: what
	// a key took then counts beside its hot key's bucket.
	keyed   *limiter.Keys
	permits *semaphore.Memory // nil if any number may be served at a time
	kept    stores            // these three, also those that the limit does not use now
	unseen  atomic.Pointer[unseen]

	decisions *decisionCounts // of the rule
}

// stores hold what was taken of a limit. They last from one version of the rules to the next,
// also through versions that have no use for them.
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

func (s *limitSpec) isExact() bool { return s.limit.Scope == rules.ScopeExact }
func (s *limitSpec) waits() bool   { return s.limit.Mode == rules.ModeWait }

// isQuick reports whether limitPlain can hold a key to the limit: the key's bucket alone
// decides, at once, and what is over the limit is refused.
func (s *limitSpec) isQuick() bool {
	return s.limit != nil && s.limit.Mode == rules.ModeLimit && !s.limit.Shape && s.limit.Priority == nil && !s.isExact() &&
		s.permits == nil && s.keyed == nil
}

// needsKey reports whether the backend or the semaphore will need the key's text.
func (s *limitSpec) needsKey() bool { return s.permits != nil || s.isExact() && s.quota.Load() != nil }

// whenAway returns what the limit does while the backend is unavailable.
func (s *limitSpec) whenAway() rules.Away {
	if s.limit.Away == "" {
		return rules.AwayLocal
	}
	return s.limit.Away
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
	old         map[string]*limitSpec           // by name, also of limits that are gone
	permits     map[string]*semaphore.Memory    // by rule, which shares them with its exceptions
	adopt       []func(now time.Duration) error // to be called once all limits are made
}

var (
	errNoBackend   = errors.New("limit.scope exact: the guard has no backend: give one by WithBackend")
	errNoSemaphore = errors.New("limit.scope exact with concurrency: the guard has no semaphore: give one by WithSemaphore")
)

// newSpec makes a limit with its permits and, unless the rule has hot, its buckets.
func (b *specBuilder) newSpec(r *rule, l *rules.Limit, name string) (*limitSpec, error) {
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
	if l.Concurrency > 0 {
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
		b.hold(s)
	}
	switch {
	case !s.isExact():
		return s, b.makeBuckets(s, r)
	case b.opts.backend == nil:
		return nil, errNoBackend
	}
	return s, nil
}

// quotaOf returns the limit's quota, or this instance's part of it. If it has not changed,
// the pointer has not either, so that buckets keep theirs.
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

// hold has the limit hold what the one before held.
func (b *specBuilder) hold(s *limitSpec) {
	b.adopt = append(b.adopt, func(now time.Duration) error {
		if s.kept.hold == nil {
			s.kept.hold = holding.New(&s.limit.Quota, b.instances)
			return nil
		}
		by := limiter.Owing{All: s.kept.hold.Resize(&s.limit.Quota, b.instances, now)}
		s.unseen.Store(s.unseen.Load().owing(&by, s.kept.hold, now))
		s.owe(by, now)
		return nil
	})
}

// makePermits makes the semaphore of a limit with concurrency, or takes over the old one,
// to which permits that are in use will be given back. A key's permits are the same whether an
// exception matches it or not.
func (b *specBuilder) makePermits(s *limitSpec, r *rule) (err error) {
	if s.isExact() && b.opts.semaphore == nil {
		return errNoSemaphore
	}
	if s.kept.permits == nil {
		s.kept.permits, err = semaphore.New(semaphore.Config{MaxKeys: b.maxKeys})
		b.permits[r.ID] = s.kept.permits
	}
	s.permits = s.kept.permits
	return err
}

// makeBuckets makes the buckets of a rule without hot, or takes over those that are kept.
// These get their new quota only once all rules are made. For a rule with hot it only checks
// that buckets can be made, and takes over those that its keys had before.
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

// setQuota changes the quota of the limit's buckets. Buckets of hot keys change theirs when
// they are next asked.
func (s *limitSpec) setQuota(quota *rules.Quota, now time.Duration) error {
	switch {
	case s.single != nil:
		return s.single.SetQuota(quota, now)
	case s.keyed != nil:
		return s.keyed.SetQuota(quota, now)
	}
	return nil
}

// owe has the keys of the limit owe permits, but for those that are hot.
func (s *limitSpec) owe(by limiter.Owing, now time.Duration) {
	switch {
	case by.All == 0 && len(by.Of) == 0:
	case s.single != nil:
		s.single.Owe(by.All, now)
	case s.keyed != nil:
		s.keyed.Owe(by, now)
	}
}

// exceptionName returns the name of an exception's limit, which a backend gets.
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
			value = string(b.redaction.NewRedactor().Append(nil, p))
		}
		name.WriteString(v.Name + "=" + value)
	}
	return name.String()
}
