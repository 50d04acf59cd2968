package middleware

import (
	"strings"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// SetInstances sets the number of instances that share the limits with scope: share, such as
// redislimiter's Members counts them. This instance's part of each limit changes, and used
// permits stay used: the new permits of a part that grows are earned, since others may have
// taken them. The part is at least one permit; if it would be less, that is logged once. Zero
// means unknown, and counts as one instance.
func (g *Guard) SetInstances(n int) {
	g.sharing.mu.Lock()
	defer g.sharing.mu.Unlock()
	n = max(n, 0)
	before := g.sharing.count.Swap(int64(n))
	if before == int64(n) {
		return
	}
	g.eachShare(func(r *rule, s *limitSpec, now time.Duration) {
		owed := s.kept.hold.Resize(&s.limit.Quota, n, now)
		if before == 0 {
			s.kept.hold.Trim()
		}
		part := *s.kept.hold.Part()
		if owed > 0 { // before the quota grows, so that no request finds the permits
			g.addSharedDebt(r, s, limiter.Owing{All: owed}, now)
		}
		g.setQuota(s, &part)
		if owed <= 0 {
			g.addSharedDebt(r, s, limiter.Owing{All: owed}, now)
		}
	})
	g.warnOfSmallParts(g.rules.Load())
}

// eachShare calls f for each limit with scope: share. The caller holds sharing.mu.
func (g *Guard) eachShare(f func(r *rule, s *limitSpec, now time.Duration)) {
	for r, s := range g.rules.Load().allSpecs {
		if s.isShared() {
			f(r, s, g.opts.clock())
		}
	}
}

// addSharedDebt adds a debt to all keys of a shared limit. The caller holds sharing.mu.
func (g *Guard) addSharedDebt(r *rule, s *limitSpec, debt limiter.Owing, now time.Duration) {
	s.unseen.Store(s.unseen.Load().withDebt(&debt, s.kept.hold, now))
	s.addDebt(debt, now)
	for _, state := range g.hotStates(r) {
		if b := state.bucket.Load(); b != nil && b.limit == s.name {
			state.bucketUnder(s.quota.Load(), s, g.opts.clock).Owe(debt.All+debt.Of[state.id], now)
		}
	}
}

// hotStates returns the states of the rule's keys that are hot or were hot.
func (g *Guard) hotStates(r *rule) (states []*hotState) {
	for _, state := range r.heated {
		states = append(states, state)
	}
	if len(r.Hot) > 0 {
		g.hot.Payloads(func(member string, state *hotState) {
			if strings.HasPrefix(member, string(r.prefix)) {
				states = append(states, state)
			}
		})
	}
	return states
}

// setQuota sets this instance's quota of a limit.
func (g *Guard) setQuota(s *limitSpec, quota *rules.Quota) {
	if *s.quota.Load() == *quota {
		return
	}
	s.quota.Store(quota)
	if err := s.setQuota(quota, g.opts.clock()); err != nil { // impossible: a part is of the same kind as the whole
		g.opts.log.Error("an instance's part of a limit cannot be set", "limit", s.name, "error", err)
	}
}

// warnOfSmallParts logs, once for each limit, that an instance's part of it is less than one
// permit. The caller holds sharing.mu.
func (g *Guard) warnOfSmallParts(set *ruleSet) {
	n := g.instances()
	for r, s := range set.allSpecs {
		if s.limit == nil || s.limit.Scope != rules.ScopeShare || g.sharing.warned[s.name] {
			continue
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
	}
}
