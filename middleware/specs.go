package middleware

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/middleware/internal/holding"
	"github.com/hotparam/hotparam/rules"
)

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

// isDecidedByBackend reports whether the backend decides on a limit, or lends the permits by which
// this instance does. A backend that does not lend cannot decide by costs, which are known late:
// each instance then does for itself.
func (b *specBuilder) isDecidedByBackend(s *limitSpec) bool {
	lends := lenderOf(b.opts.backend) != nil
	return s.limit.Scope.InRedis() && (s.unit == rules.Requests || lends || b.opts.backend == nil)
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

// holders returns the most instances that can hold permits of a limit in advance.
func holders(r *rule, l *rules.Limit) int {
	if l.Scope != rules.ScopeFleet {
		return 0
	}
	return fleet.FitOf(r.Rule, l).Instances
}

// lenderOf returns what lends the permits of a backend, or nil. A wrapper, such as a
// [limiter.Failover], lends those of the backend that it wraps.
func lenderOf(b limiter.Backend) fleet.Lender {
	if lender, ok := b.(fleet.Lender); ok {
		return lender
	}
	if wrapper, ok := b.(interface{ Unwrap() limiter.Backend }); ok {
		return lenderOf(wrapper.Unwrap())
	}
	return nil
}
