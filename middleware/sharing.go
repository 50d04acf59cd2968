package middleware

import (
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// sharing is the number of instances that share the limits with scope: share, and its
// consequences.
type sharing struct {
	mu     sync.Mutex // held while rules or instances change
	count  atomic.Int64
	warned map[string]bool // names of limits whose small part here was logged
	// gone holds, by rule, what tables have done that are not kept.
	gone map[string]displacement
}

// instances returns how many instances there are, at least 1.
func (g *Guard) instances() int { return int(max(1, g.sharing.count.Load())) }

// SetInstances sets how many instances share the limits with scope: share, such as
// redislimiter's Members counts them. This instance's part of each limit changes, and what
// was taken stays taken. The part is at least one permit; if it would be less, that is
// logged once. Zero means not known, and counts as one instance.
func (g *Guard) SetInstances(n int) {
	g.sharing.mu.Lock()
	defer g.sharing.mu.Unlock()
	if n = max(n, 0); g.sharing.count.Swap(int64(n)) == int64(n) {
		return
	}
	set := g.rules.Load()
	set.allSpecs(func(_ *rule, s *limitSpec) bool {
		if s.limit != nil && s.limit.Scope == hotparam.ScopeShare && s.quota.Load() != nil {
			part, _ := limiter.Share(&s.limit.Quota, n)
			g.setQuota(s, &part)
		}
		return true
	})
	g.warnOfSmallParts(set)
}

// setQuota sets this instance's quota of a limit.
func (g *Guard) setQuota(s *limitSpec, quota *hotparam.Quota) {
	if *s.quota.Load() == *quota {
		return
	}
	s.quota.Store(quota)
	if err := s.setQuota(quota, g.opts.clock()); err != nil { // a part is of the same kind as the whole
		g.opts.log.Error("an instance's part of a limit cannot be set", "limit", s.name, "error", err)
	}
}

// warnOfSmallParts logs, once for each, the limits of which an instance's part is less than one
// permit. The caller holds the lock of sharing.
func (g *Guard) warnOfSmallParts(set *ruleSet) {
	n := g.instances()
	set.allSpecs(func(r *rule, s *limitSpec) bool {
		if s.limit == nil || s.limit.Scope != hotparam.ScopeShare || g.sharing.warned[s.name] {
			return true
		}
		below := s.limit.Concurrency > 0 && s.limit.Concurrency < n
		if s.quota.Load() != nil {
			_, less := limiter.Share(&s.limit.Quota, n)
			below = below || less
		}
		if below {
			if g.sharing.warned == nil {
				g.sharing.warned = make(map[string]bool)
			}
			g.sharing.warned[s.name] = true
			g.opts.log.Warn("an instance's part of the limit is less than one permit, and it takes one all the same: all instances may let pass more than the limit says; use scope: exact, or a higher limit",
				"rule", r.ID, "instances", n)
		}
		return true
	})
}
