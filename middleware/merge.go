package middleware

import "github.com/hotparam/hotparam/rules"

// addResult merges one limit's result into the verdict, and reports whether the request is
// within that limit. Any denial denies, and the longest wait wins. If all limits allow the
// request, the verdict reports the tightest limit that the request is within. If there is
// none, it reports another reason to pass.
func (r *request) addResult(c *claim, got *rules.Decision) (within bool) {
	got.Rule = c.rule.ID
	if !got.Allowed {
		r.addDenial(c, got)
		return false
	}
	within = got.Reason == rules.ReasonWithin
	r.pending.delay = max(r.pending.delay, got.Delay)
	v := &r.verdict
	switch d := &v.decision; {
	case r.denied:
	case d.Reason == rules.ReasonNone, within && (d.Reason != rules.ReasonWithin || got.Remaining < d.Remaining):
		v.set(c, got)
	}
	return within
}

// addDenial merges a limit's denial into the verdict. A limit in shadow mode denies nothing.
func (r *request) addDenial(c *claim, got *rules.Decision) {
	if limit := c.spec.limit; limit != nil && limit.Mode == rules.ModeShadow {
		d := &r.verdict.decision
		r.countShadowed()
		r.countDecision(&c.spec.decisions.of[rules.ReasonShadow])
		if d.Reason == rules.ReasonNone {
			d.Reason, d.Rule = rules.ReasonShadow, got.Rule
		}
		return
	}
	r.deny(c, got)
}

// deny merges a denial into the verdict, which reports the longest wait. A denial that no retry
// ends counts as the longest.
func (r *request) deny(c *claim, got *rules.Decision) {
	v := &r.verdict
	d := &v.decision
	if !r.denied || !isFinal(d.Reason) && (isFinal(got.Reason) || got.RetryAfter > d.RetryAfter) {
		v.set(c, got)
	}
	r.denied = true
}

// recordDecision counts the request for the rule that decided on it. It is called after the
// wait, and not for requests that met no limit.
func (r *request) recordDecision() {
	v := &r.verdict
	switch {
	case v.decider == nil || v.decision.Reason == rules.ReasonNone:
	case !r.denied && !v.decision.Allowed:
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

// countShadowed counts the request as one that a limit in shadow mode would have refused.
func (r *request) countShadowed() {
	if run := r.in.run; run != nil {
		run.shadowed++
		return
	}
	r.guard.stats.Shadowed.Add(1)
}
