package middleware

import "math/rand/v2"

// runCheck is a check of the limits for a run of the handler. The decision on it is that on the
// request which leads the run, unless the run refreshes an older answer, or the request is handled
// alone after it. So it counts once it is known how the request was answered: each request counts
// once.
type runCheck struct {
	made      bool // the limits were asked
	refresh   bool
	decisions []*spreadCount
	shadowed  int64
}

// refreshes reports whether the run refreshes an older answer.
func (c *runCheck) refreshes() bool { return c != nil && c.refresh }

// countRun counts a request by the decision on its run, or as gone, instead of as shared.
func (g *Guard) countRun(decisions *decisionCounts, run *runCheck, outcome Outcome) {
	switch {
	case outcome == Left && !run.made:
		run.decisions = []*spreadCount{&decisions.of[decisionGone]}
	case !run.made || outcome != Led && outcome != Refused && outcome != Left: // or LimitStep follows
		return
	}
	shard := rand.Uint32()
	decisions.asked.addOne(shard)
	for _, c := range run.decisions {
		c.addOne(shard)
	}
	g.stats.Shadowed.Add(run.shadowed)
}

// countShadowed counts the request as one that a limit in shadow mode would have refused.
func (r *request) countShadowed() {
	if run := r.in.run; run != nil {
		run.shadowed++
		return
	}
	r.guard.stats.Shadowed.Add(1)
}
