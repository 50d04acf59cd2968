package middleware

import (
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// applyRules counts the request and asks the limits of this process, rule by rule. It asks
// all of them, even after one has denied, so that the longest wait is known.
func (r *request) applyRules() {
	if r.route.byPath {
		r.canonicalPath()
	}
	if r.route.matchers && r.askMatchers() {
		return
	}
	if r.route.shares && r.in.onlyCounts() {
		r.shareOrLimit()
	} else {
		r.applyEach()
	}
}

// shareOrLimit counts the request. If one of its keys is hot and the key's rule answers requests
// together, that is all. Otherwise it also asks the limits.
func (r *request) shareOrLimit() {
	r.asks = false
	r.applyEach()
	if r.shared != nil && !r.refusing {
		return
	}
	r.shared = nil
	r.counts, r.asks = false, true
	if r.unasked {
		r.applyEach()
	}
}

// applyEach implements applyRules once the matchers have been asked.
func (r *request) applyEach() {
	set := r.route.set
	matched := false
	ordered := r.guard.controls.Load()
	for i := range r.route.rules {
		c := &r.route.rules[i]
		if c.body != 0 && !(r.matchesHead(c) && r.mayRead(c)) {
			continue
		}
		if c.picks && !r.picked(c, i) {
			continue
		}
		matched = true
		if r.trace != nil {
			r.trace.addMatch(c)
		}
		if c.Ignore {
			r.verdict.pass(rules.ReasonIgnored, c.ID)
			return
		}
		if ordered != nil {
			r.beginControls(c, ordered)
		}
		switch {
		case r.isUnread(c):
			r.useUnread(c)
		case c.matcher != nil:
			r.useMatcherKey(c, r.matched[i])
		case c.By.Kind == rules.ByNone:
			r.limitRule(c)
		default:
			r.useKeys(c)
		}
		if r.controlled.controls != nil {
			r.endControls(c)
		}
		if set.Evaluate == rules.EvaluateFirst {
			break
		}
	}
	if !matched && set.DenyNoMatch {
		r.denied, r.verdict = true, verdict{decision: rules.Decision{Reason: rules.ReasonNoMatch}}
	}
}

// mayRead reports whether the body may be read for a rule that depends on it. Requests that
// other limits deny are not read, since a client that waits for 100 Continue sends the body
// only when it is read. Rules by the body come last, so the limits of this process have
// decided by then; mayRead asks the backend now.
func (r *request) mayRead(c *candidate) bool {
	if r.route.set.Evaluate == rules.EvaluateFirst || c.Ignore || r.lookAtBody() != bodyDeclared || !c.body.has(r.body.source) {
		return true
	}
	if !r.denied {
		r.askBackend()
	}
	return !r.denied
}

// useUnread applies a rule to a request whose body could not be read. The keys that the rule
// would make are replaced by one key for all such requests.
func (r *request) useUnread(c *candidate) {
	switch {
	case c.Unread == rules.UnreadReject && !r.asks:
		r.postponeRefusal()
	case c.Unread == rules.UnreadReject:
		r.addDenial(&claim{rule: c, spec: c.spec}, &rules.Decision{Reason: rules.ReasonUnread, Rule: c.ID})
	case c.By.Kind == rules.ByNone && c.matcher == nil:
		r.limitRule(c)
	default:
		if c.overlaps {
			r.countTotal(c)
		}
		r.startKey(c)
		r.key = base.AppendUnread(r.key, r.body.source.String())
		r.useKey(c)
	}
}
