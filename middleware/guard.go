package middleware

import (
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/middleware/internal/backoff"
	"github.com/hotparam/hotparam/middleware/internal/bodies"
	"github.com/hotparam/hotparam/rules"
)

// Guard decides on requests. It is safe for concurrent use.
type Guard struct {
	rules    atomic.Pointer[ruleSet]
	counts   *collector.Collector // nil if no rule may have hot
	hot      *hotset.Set[*hotState]
	localHot *localHot
	failover *limiter.Failover // nil if there is no backend
	fleet    *fleet.Fleet      // holds permits of limits with scope: fleet; nil if the backend does not lend
	cached   *limiter.Cached   // asked by failover; nil if the program gave a Failover
	local    *limiter.Memory   // decides while the backend is unavailable; nil if the program gave a Failover
	maxKeys  int               // see WithMaxKeys
	backends backends
	// heldPermits are those of keys that are held by their cost, by back end, unless Redis has them.
	heldPermits *semaphore.Memory
	requests    sync.Pool // of *request
	tickets     sync.Pool // of *Ticket
	running     runningTickets
	opts        options
	sharing     sharing
	controls    atomic.Pointer[controls] // nil if there are none
	someHot     atomic.Bool              // whether some key is hot
	lastHot     atomic.Int64             // Unix time in nanoseconds when some key began or ceased to be; 0 if none did
	former      formerLimits
	heated      heatedStates // guarded by sharing.mu
	bodies      bodies.Counts
	concrete    concreteRoutes
	backoffs    backoff.Lines
	lines       limiter.WaitLines // requests that wait for their turn
	sampling    sync.Mutex        // guards the samples of hot keys
	reports     int64             // reports of Admitted; guarded by sampling

	controlled controlState

	stats            Counters[atomic.Int64]
	withheld, absent spreadCount
	backendTimes     durations
	decisions        map[string]*decisionCounts // by rule; guarded by sharing.mu, except in New
}

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

// backends holds the backend of limits with scope: fleet or exact for each value of
// when_redis_is_away.
type backends map[rules.OutagePolicy]*limiter.Failover

// controls are the operators' controls in force, by rule. They are a snapshot that is never
// changed.
type controls map[string]*ruleControls

// ruleControls are the controls of one rule's keys.
type ruleControls struct {
	actions   map[string]published.ControlAction // by member
	overrides bool                               // whether some are not pins; the hot set has the pins
}

// forRule returns the controls of a rule, or nil if there are none.
func (c *controls) forRule(rule string) *ruleControls {
	if c == nil {
		return nil
	}
	return (*c)[rule]
}

// controlState holds the controls that [Guard.SetControls] was given.
type controlState struct {
	mu      sync.Mutex // locked after sharing.mu, and before the hot set's lock
	given   []published.Control
	ignored map[rules.Key]bool // keys whose controls have been logged as ignored
}

// failOpen lets a request pass if its check has panicked.
func (g *Guard) failOpen(d *rules.Decision) {
	if recover() != nil {
		g.stats.Panics.Add(1)
		*d = rules.Decision{Allowed: true, Reason: rules.ReasonOpen}
	}
}

// countPanic recovers from a panic that has no other effect, and counts it. It is deferred.
func (g *Guard) countPanic() {
	if recover() != nil {
		g.stats.Panics.Add(1)
	}
}
