package middleware

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// terms are what requests or keys are held to, by a rule or an exception of it.
type terms struct {
	limit *hotparam.Limit // nil: nothing
	unit  hotparam.Unit
	// name tells them from all others: to a backend, and from one version of the
	// rules to the next.
	name string
	own  map[hotparam.Algorithm]limiter.Algorithm // the user's
	// quota is this instance's: the limit's, or its part of it; nil: any rate.
	quota atomic.Pointer[hotparam.Quota]

	single  limiter.Bucket    // of a rule with neither hot nor a key; nil: there is none here
	keyed   limiter.Keys      // of a rule with a key but not hot
	permits *semaphore.Memory // nil: any number may be served at a time
}

func (t *terms) exact() bool { return t.limit.Scope == hotparam.ScopeExact }
func (t *terms) waits() bool { return t.limit.Mode == hotparam.ModeWait }

// builder makes the terms of a version of the rules, with the state of those that it
// takes the place of.
type builder struct {
	opts      *options
	instances int
	old       map[string]*terms
	adopt     []func(now time.Duration) error // what is done once all is made
}

var (
	errNoBackend   = errors.New("limit.scope exact: the guard has no backend: give one by WithBackend")
	errNoSemaphore = errors.New("limit.scope exact with concurrency: the guard has no semaphore: give one by WithSemaphore")
)

// terms makes the buckets of a limit; those of hot keys come with the keys.
func (b *builder) terms(r *rule, l *hotparam.Limit, name string) (*terms, error) {
	t := &terms{limit: l, unit: r.Count, name: name, own: b.opts.algorithms}
	if l == nil {
		return t, nil
	}
	if l.Concurrency > 0 {
		if err := b.hold(t); err != nil {
			return nil, err
		}
	}
	if l.Burst == hotparam.Unlimited || l.Rate.IsZero() {
		return t, nil
	}
	if l.Algorithm.Custom() && b.opts.algorithms[l.Algorithm] == nil {
		return nil, fmt.Errorf("limit.algorithm %q: the guard has none of this name: give it by WithAlgorithm", l.Algorithm)
	}
	old := b.old[name]
	quota := b.quota(l)
	if old != nil {
		if q := old.quota.Load(); q != nil && *q == *quota {
			quota = q
		}
	}
	t.quota.Store(quota)
	switch {
	case t.exact():
		if b.opts.backend == nil {
			return nil, errNoBackend
		}
		return t, nil
	case len(r.Hot) > 0:
		_, err := t.newBucket(quota) // as each of them will be
		return t, err
	}
	return t, b.stores(t, old, r.keyless())
}

// quota is the limit's, or this instance's part of it.
func (b *builder) quota(l *hotparam.Limit) *hotparam.Quota {
	q := l.Quota.WithDefaults()
	if l.Scope == hotparam.ScopeShare {
		q, _ = limiter.Share(&l.Quota, b.instances)
	}
	return &q
}

// stores makes the buckets of a rule without hot, or takes those of the old terms
// over.
func (b *builder) stores(t, old *terms, keyless bool) (err error) {
	q := t.quota.Load()
	if _, err := limiter.NewAlgorithm(q, t.own); err != nil {
		return err
	}
	switch {
	case keyless && (old == nil || old.single == nil):
		t.single, err = t.newBucket(q)
	case keyless:
		t.single = old.single
		b.adopt = append(b.adopt, func(now time.Duration) (err error) {
			if t.single.SetQuota(q, now) != nil { // it takes another kind
				t.single, err = t.newBucket(q)
			}
			return err
		})
	case old == nil || old.keyed == nil:
		t.keyed, err = limiter.NewKeys(q, b.opts.maxKeys, t.own)
	default:
		t.keyed = old.keyed
		b.adopt = append(b.adopt, func(now time.Duration) (err error) {
			if t.keyed.SetQuota(q, now) != nil {
				t.keyed, err = limiter.NewKeys(q, b.opts.maxKeys, t.own)
			}
			return err
		})
	}
	return err
}

// newBucket makes a bucket of one key.
func (t *terms) newBucket(q *hotparam.Quota) (limiter.Bucket, error) {
	return limiter.NewBucket(q, t.own)
}

// hold makes the semaphore of terms with concurrency. Who holds permits of the one
// before gives them back to that, which is the same one where there is one.
func (b *builder) hold(t *terms) (err error) {
	if t.exact() && b.opts.semaphore == nil {
		return errNoSemaphore
	}
	if old := b.old[t.name]; old != nil && old.permits != nil {
		t.permits = old.permits
		return nil
	}
	t.permits, err = semaphore.New(semaphore.Config{MaxKeys: b.opts.maxKeys})
	return err
}

// exceptionName is the name of an exception's terms.
func exceptionName(r *rule, x *hotparam.Exception) string {
	name := strings.Builder{}
	name.WriteString(r.ID)
	for i, v := range x.Values {
		sep := byte('&')
		if i == 0 {
			sep = '?'
		}
		name.WriteByte(sep)
		name.WriteString(v.Name + "=" + v.Value)
	}
	return name.String()
}
