package middleware

import "github.com/hotparam/hotparam/rules"

// Check counts a request, decides on it, and waits if a rule says so. It is for rules that
// count requests. For rules that count costs it only checks that there is room. For rules
// with concurrency it acquires a permit and releases it at once. [Guard.Begin] serves both
// kinds fully.
func (g *Guard) Check(req Request) (d rules.Decision) {
	g.check(&req, false, &d)
	return d
}

// Begin is [Guard.Check] for rules that count what a request costs (bytes, milliseconds or
// units), or that have concurrency. A rule that counts costs allows a request if there is a
// token, and charges the cost at the request's end. Later requests are refused until the cost
// is paid off. A rule with concurrency holds a permit until the request's end. The caller
// must end the ticket once the request is done, whatever its result. The ticket is nil if no
// such rule matches or the request is refused.
//
//	d, ticket := guard.Begin(req)
//	if !d.Allowed {
//		return refused
//	}
//	defer func() { ticket.End(middleware.Cost{Units: rows}) }()
//
// [rules.Decision.Answer] returns the response to send, with its headers. [CollectCost] is for
// handlers that call [AddCost].
//
// Refused requests cost nothing. So a key that is limited to far below its threshold cools
// after some time and becomes hot again, unlike a key whose requests are counted.
func (g *Guard) Begin(req Request) (d rules.Decision, t *Ticket) {
	return d, g.check(&req, true, &d)
}

// check implements Check and, if holds is set, Begin. It writes the decision to the caller's
// d, since a copy would cost as much as a rule.
func (g *Guard) check(in *Request, holds bool, d *rules.Decision) (t *Ticket) {
	defer g.failOpen(d)
	if g.opts.skip != nil && g.opts.skips(in) {
		d.Allowed = true
		return nil
	}
	if in.Steps.counts() {
		g.before(in)
	}
	route := g.routeOf(in)
	done := false
	if route.plain != nil {
		t, done = g.checkPlain(route, in, holds, d)
	}
	if !done {
		t = g.checkAny(route, in, holds, d)
	}
	g.after(in, d)
	return t
}

// checkAny implements check for any rules.
func (g *Guard) checkAny(route *route, in *Request, holds bool, d *rules.Decision) *Ticket {
	r := g.newRequest(in, route, holds)
	r.applyRules()
	return r.finish(d)
}

// routeOf returns the route of a request, which has the rules that the request may match.
func (g *Guard) routeOf(in *Request) *route {
	set := g.rules.Load()
	switch {
	case in.Pattern == "":
		return set.unknown
	case in.Method == "" && in.Path == "":
		return set.ofResource(in.Pattern)
	}
	return set.ofPattern(in.Method, in.Pattern)
}
