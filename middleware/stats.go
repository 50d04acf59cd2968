package middleware

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/middleware/internal/bodies"
	"github.com/hotparam/hotparam/rules"
)

// Stats are a guard's counters since it was made.
type Stats struct {
	Counters[int64]
	// Remembered counts questions that were denied without a call, since the backend had
	// already said until when it denies them.
	Remembered int64
	// Displaced counts keys that lost their place in a limit's full table, and keys of a limit
	// with concurrency that found none. They are still limited, but a key may be refused that
	// should not be; see [WithMaxKeys].
	Displaced int64
	// Inherited counts requests whose keys were not in the table and began with an earlier
	// debt: their own or, rarely, another key's.
	Inherited int64
	Local     int64 // keys that only this instance had found hot
	Refuted   int64 // part of Local: keys that the aggregator did not confirm
	Unmarked  int64 // part of Local: keys that were not limited because there was no room
	// Concrete counts routes that are the path of a request although a rule has the template,
	// such as "/u/7" for "/u/{id}". Beyond some thousand, further routes are not counted.
	Concrete int64
	// Withheld counts parameters that were left out of keys because they look secret.
	Withheld int64
	// Absent counts parameters that rules name and that should always be present: the
	// function of a [WithParam] returned "", or the request has no client address, as on a
	// Unix socket. Such a request makes no key of them.
	Absent int64
	// Bodies counts the bodies that were read for rules that depend on them.
	Bodies int64
	// Unread counts the bodies that rules depend on but that could not be read.
	Unread Unread
}

// Unread counts requests whose body a rule needed but which could not be read, by
// reason.
type Unread struct {
	TooLarge  int64 // larger than the maximum
	Encoded   int64 // compressed
	Malformed int64 // broken syntax
	NoRoom    int64 // too many bytes of other bodies were held
	Failed    int64 // the connection or the request's context ended
	Upgraded  int64 // the request switches to another protocol
}

func unreadOf(c *bodies.Counts) Unread {
	n := func(r bodies.Reason) int64 { return c.Unread[r].Load() }
	return Unread{
		TooLarge: n(bodies.TooLarge), Encoded: n(bodies.Encoded), Malformed: n(bodies.Malformed),
		NoRoom: n(bodies.NoRoom), Failed: n(bodies.Failed), Upgraded: n(bodies.Upgraded),
	}
}

// Stats returns the guard's counters.
func (g *Guard) Stats() Stats {
	s := Stats{
		Counters: base.LoadCounters[Counters[int64]](&g.stats),
		Concrete: g.concrete.found.Load(),
		Withheld: g.withheld.load(),
		Absent:   g.absent.load(),
		Bodies:   g.bodies.Read.Load(),
		Unread:   unreadOf(&g.bodies),
	}
	for _, n := range g.displaced() {
		s.Displaced, s.Inherited = s.Displaced+int64(n.displaced), s.Inherited+int64(n.inherited)
	}
	s.Local, s.Refuted = g.localHot.stats()
	s.Unmarked = g.hot.RefusedMarks()
	if g.cached != nil {
		s.Remembered = int64(g.cached.Stats().Saved)
	}
	return s
}

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

// ExactTimes returns the times that requests waited for the backend of limits with scope: fleet
// or exact. A request asks all its limits at once.
func (g *Guard) ExactTimes() Histogram {
	h := Histogram{Bounds: durationBounds, Sum: time.Duration(g.backendTimes.sum.Load())}
	for i := range g.backendTimes.counts {
		h.Counts = append(h.Counts, g.backendTimes.counts[i].Load())
	}
	return h
}
