package middleware

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/middleware/internal/holding"
	"github.com/hotparam/hotparam/rules"
)

// sharing is the number of instances that share the limits with scope: share, and the state
// that depends on it.
type sharing struct {
	mu     sync.Mutex // held while rules or instances change
	count  atomic.Int64
	warned map[string]bool // names of limits whose small part here has been logged
	// gone holds, by rule, the counters of tables that are no longer kept.
	gone map[string]displacement
	// joining is set while the holdings of this instance in the shared limits are unknown.
	joining atomic.Bool
}

// instances returns the number of instances, at least 1.
func (g *Guard) instances() int { return int(max(1, g.sharing.count.Load())) }

// permitsPart returns this instance's part of the permits that all share. It is at least one,
// and exactly one while the instance neither knows the others nor may count as alone.
func (g *Guard) permitsPart(permits int64) int64 {
	if g.sharing.count.Load() == 0 && g.sharing.joining.Load() {
		return 1
	}
	return max(1, permits/int64(g.instances()))
}

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
