package middleware

import (
	"context"
	"net/http"

	"github.com/hotparam/hotparam"
)

// Request is what rules look at.
type Request struct {
	// Context ends a wait: a request whose context ends while it waits is refused, and
	// gives back what it had taken. No request waits beyond its context's deadline.
	// If nil, nothing ends a wait.
	Context context.Context
	Method  string
	// Path is the path as it travels, escaped.
	Path string
	// Query is the raw query, without "?".
	Query string
	// Pattern is the route's pattern as the router has it ("GET /u/{id}", "/u/{id}").
	// If it is empty, the route is not known, and keys have the path itself. For what is
	// not HTTP it is the resource.
	Pattern string
	// Caller is who sends the request, such as an address or a tenant; empty if not
	// known. For hot keys, the callers with the most requests are reported.
	Caller string

	http *http.Request // for matchers; nil if it is none
}

// Check counts a request and decides on it, and waits where a rule says so. It holds
// nothing afterwards: for rules that count costs it checks whether there is room, and
// counts nothing; for those with concurrency it gets a permit, and gives it back at
// once. See [Guard.Begin].
func (g *Guard) Check(req Request) (d hotparam.Decision) {
	g.check(&req, false, &d)
	return d
}

// check is Check and, if holds is set, Begin. It writes the decision to d, where the
// caller wants it, since a copy would cost as much as a rule.
func (g *Guard) check(in *Request, holds bool, d *hotparam.Decision) (o outcome) {
	defer g.failOpen(d)
	g.before(in)
	route := g.routeOf(in)
	done := false
	if route.plain != nil {
		o, done = g.checkPlain(route, in, holds, d)
	}
	if !done {
		o = g.checkAny(route, in, holds, d)
	}
	g.after(in, d)
	return o
}

// checkAny is check by any rules.
func (g *Guard) checkAny(route *route, in *Request, holds bool, d *hotparam.Decision) outcome {
	r := g.newRequest(in, route, holds)
	r.applyRules()
	return r.finish(d)
}

// routeOf returns the rules that a request of this pattern may match.
func (g *Guard) routeOf(in *Request) *route {
	set := g.rules.Load()
	if in.Pattern == "" {
		return set.unknown
	}
	return set.ofPattern(in.Method, in.Pattern)
}

// failOpen turns a panic of ours into a request that passes.
func (g *Guard) failOpen(d *hotparam.Decision) {
	if recover() != nil {
		g.panics.Add(1)
		*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
	}
}

// applyRules counts the request and asks the limits of this process, rule by rule. All
// are asked, even after one has denied, so that the longest wait is known.
func (r *request) applyRules() {
	set := r.route.set
	if r.route.byPath {
		r.canonicalPath()
	}
	if r.route.matchers && r.askMatchers() {
		return
	}
	matched := false
	for i := range r.route.rules {
		c := &r.route.rules[i]
		if c.picks && !r.picked(c, i) {
			continue
		}
		matched = true
		if c.Ignore {
			r.verdict.pass(hotparam.ReasonIgnored, c.ID)
			return
		}
		switch {
		case c.matcher != nil:
			r.useMatcherKey(c, r.matched[i])
		case c.By.Kind == hotparam.ByNone:
			r.limitRule(c)
		default:
			r.useKeys(c)
		}
		if set.Evaluate == hotparam.EvaluateFirst {
			break
		}
	}
	if !matched && set.DenyNoMatch {
		r.verdict = verdict{denied: true, decision: hotparam.Decision{Reason: hotparam.ReasonNoMatch}}
	}
}
