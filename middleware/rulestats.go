package middleware

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// RuleStats are the counters of one rule in force. They continue when the rules are reloaded,
// even after a time without the rule.
type RuleStats struct {
	Rule string
	// Decisions counts the requests that the rule's limits decided on, by the name of the
	// reason ([rules.Reason.String]), and as "gone" the requests whose context ended while
	// they waited. A request that several rules limit counts for the rule that decided. It
	// also counts for each rule whose limit in shadow mode would have refused it. Requests of
	// keys that are not hot meet no limit; the collector counts them. "shared" has those that
	// are answered together with others and run no handler. A request between the two steps of
	// a check ([Steps]) counts there until its limits are asked. Decisions is nil if the rule
	// has no limit.
	Decisions map[string]int64
	HotKeys   int // number of the rule's keys that are hot now
}

// decisionGone is the index of requests whose context ended while they waited. The other
// indices are reasons.
const decisionGone = len(decisionCounts{}.of) - 1

// decisionCounts counts the requests that a rule decided on.
type decisionCounts struct {
	of [rules.ReasonShared + 2]spreadCount
	// asked counts the part of of[rules.ReasonShared] whose limits were asked after all. These
	// requests count by that decision.
	asked  spreadCount
	shared atomic.Int64 // the most that loadShared has returned
}

// loadShared returns the number of requests that were answered together with others. It never
// decreases, as counters of metrics must not: a request between the two steps of its check may
// have been returned already. It is then too high by such requests at most, until others follow.
func (c *decisionCounts) loadShared() int64 {
	n := c.of[rules.ReasonShared].load() - c.asked.load()
	for {
		most := c.shared.Load()
		if n <= most || c.shared.CompareAndSwap(most, n) {
			return max(n, most)
		}
	}
}

// decided lists the reasons of limits' decisions, without rules.ReasonShared.
var decided = []rules.Reason{
	rules.ReasonWithin, rules.ReasonLimited, rules.ReasonBlocked, rules.ReasonLocked, rules.ReasonBusy,
	rules.ReasonServed, rules.ReasonUnavailable, rules.ReasonUnread, rules.ReasonOpen, rules.ReasonShadow,
}

// decisionsOf returns the counters of a rule, which outlast the rule. Their number is the number
// of ids that rules have had.
func (g *Guard) decisionsOf(rule string) *decisionCounts {
	c := g.decisions[rule]
	if c == nil {
		c = new(decisionCounts)
		g.decisions[rule] = c
	}
	return c
}

// recordDecision counts the request for the rule that decided on it. It is called after the
// wait, and not for requests that met no limit.
func (r *request) recordDecision() {
	v := &r.verdict
	switch {
	case v.decider == nil || v.decision.Reason == rules.ReasonNone:
	case !v.denied && !v.decision.Allowed:
		r.countDecision(&v.decider.decisions.of[decisionGone])
	default:
		r.countDecision(&v.decider.decisions.of[v.decision.Reason])
	}
}

// countDecision adds the request to a counter of decisions. The decision on a run counts later, if at
// all; see runCheck.
func (r *request) countDecision(c *spreadCount) {
	if run := r.in.run; run != nil {
		run.decisions = append(run.decisions, c)
		return
	}
	c.addOne(r.shard)
}

// RuleStats returns the counters of the rules in force, in their order.
func (g *Guard) RuleStats() []RuleStats {
	set := g.rules.Load()
	hot := make(map[string]int)
	for _, h := range g.hot.All() {
		hot[h.Rule]++
	}
	all := make([]RuleStats, len(set.rules))
	for i := range set.rules {
		r := &set.rules[i]
		all[i] = RuleStats{Rule: r.ID, HotKeys: hot[r.ID]}
		if !r.limits() {
			continue
		}
		all[i].Decisions = map[string]int64{"gone": r.spec.decisions.of[decisionGone].load()}
		for _, reason := range decided {
			all[i].Decisions[reason.String()] = r.spec.decisions.of[reason].load()
		}
		all[i].Decisions[rules.ReasonShared.String()] = r.spec.decisions.loadShared()
	}
	return all
}

// limits reports whether the rule can refuse requests.
func (r *rule) limits() bool {
	return r.Limit != nil || slices.ContainsFunc(r.Except, func(x rules.Exception) bool { return x.Limit != nil || x.Action == rules.Block })
}

// Histogram counts durations.
type Histogram struct {
	Bounds []time.Duration // upper bounds, ascending
	Counts []int64         // durations up to each bound and above the previous one; the last counts longer ones
	Sum    time.Duration
}

var durationBounds = []time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
}

// durations is a histogram for concurrent use.
type durations struct {
	counts [11]atomic.Int64 // one more than durationBounds
	sum    atomic.Int64
}

func (d *durations) add(t time.Duration) {
	i, _ := slices.BinarySearch(durationBounds, t)
	d.counts[i].Add(1)
	d.sum.Add(int64(t))
}

// ExactTimes returns the times that requests waited for the backend of limits with scope: fleet
// or exact. A request asks all its limits at once.
func (g *Guard) ExactTimes() Histogram {
	h := Histogram{Bounds: durationBounds, Sum: time.Duration(g.backendTimes.sum.Load())}
	for i := range g.backendTimes.counts {
		h.Counts = append(h.Counts, g.backendTimes.counts[i].Load())
	}
	return h
}
