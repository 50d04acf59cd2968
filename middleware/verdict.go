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
	case v.denied:
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
	if !v.denied || !isFinal(d.Reason) && (isFinal(got.Reason) || got.RetryAfter > d.RetryAfter) {
		v.set(c, got)
	}
	v.denied = true
}

// allowed is the verdict on a request that no limit applies to.
var allowed = verdict{decision: rules.Decision{Allowed: true}}

// reset makes the verdict allowed again. It writes nothing if it still is.
func (v *verdict) reset() {
	if v.decision.Reason != rules.ReasonNone || v.decider != nil {
		*v = allowed
	}
}

// pass replaces the decision by one that allows the request.
func (v *verdict) pass(reason rules.Reason, rule string) {
	v.decision = rules.Decision{Allowed: true, Reason: reason, Rule: rule}
}

// set replaces the decision by that of a limit, except for the Delay, which r.pending has.
func (v *verdict) set(c *claim, got *rules.Decision) {
	v.decider, v.hash = c.spec, c.hash
	v.decision = *got
	v.decision.Delay = 0
}

// copyTo writes the decision to d, which must be zero.
func (v *verdict) copyTo(d *rules.Decision) {
	*d = v.decision
	if v.decider != nil {
		d.From = v.decider
	}
}

// serves reports whether the limit that denied the request answers instead of the handler.
// It does not for a blocked value or a body that cannot be read.
func (v *verdict) serves() bool {
	return v.decider != nil && v.decider.limit != nil && v.decider.limit.Mode == rules.ModeServe &&
		!isFinal(v.decision.Reason)
}

// isFinal reports whether no retry of a request denied for this reason can pass.
func isFinal(reason rules.Reason) bool {
	return reason == rules.ReasonNoMatch || reason == rules.ReasonBlocked || reason == rules.ReasonUnread
}
