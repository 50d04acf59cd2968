package middleware

import "github.com/hotparam/hotparam/rules"

// verdict is the merged result of a request's limits.
type verdict struct {
	decision rules.Decision
	decider  *limitSpec // the limit that decided, or nil
	hash     uint64     // hash of the key that it decided on
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
