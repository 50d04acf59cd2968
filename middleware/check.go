package middleware

import (
	"context"
	"net/http"

	"github.com/hotparam/hotparam"
)

// Request is the part of a request that rules use.
type Request struct {
	// Context ends a wait: a request whose context ends while it waits is refused, and
	// gives back what it had taken. A request never waits beyond its context's deadline.
	// If nil, nothing ends a wait.
	Context context.Context
	Method  string
	// Path is the escaped path, as the client sent it.
	Path string
	// Query is the raw query, without "?".
	Query string
	// Pattern is the route's pattern in the router's syntax ("GET /u/{id}", "/u/{id}").
	// If it is empty, the route is not known, and keys have the path itself. For requests
	// that are not HTTP it is the resource.
	Pattern string
	// Caller is the sender of the request, such as an address or a tenant, or empty if
	// it is not known. The most frequent callers of hot keys are reported.
	Caller string

	// HTTP is the request itself, if it is HTTP: rules read headers, cookies, the client's
	// address and the body from it, and matchers get it. It may be nil. Of a request that is
	// no net/http one its Header, Host and RemoteAddr suffice, and for rules by form or json
	// its Method, Body and ContentLength. A body that was read is replaced by one that reads
	// the same.
	HTTP *http.Request
}

// http returns the request as one of net/http, or nil.
func (in *Request) http() *http.Request { return in.HTTP }

// Check counts a request, decides on it, and waits if a rule says so. It is for rules that
// count requests. For rules that count costs it only checks that there is room. For rules
// with concurrency it acquires a permit and releases it at once. See [Guard.Begin] for
// these.
func (g *Guard) Check(req Request) (d hotparam.Decision) {
	g.check(&req, false, &d)
	return d
}

// check is Check and, if holds is set, Begin. It writes the decision to the caller's d: a
// copy would cost as much as a rule.
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

// checkAny is check for any rules.
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

// failOpen lets a request pass whose check has panicked.
func (g *Guard) failOpen(d *hotparam.Decision) {
	if recover() != nil {
		g.panics.Add(1)
		*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
	}
}

// applyRules counts the request and asks the limits of this process, rule by rule. It asks
// all of them, even after one has denied, so that the longest wait is known.
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
		if c.body != 0 && !(r.matchesHead(c) && r.mayRead(c)) {
			continue
		}
		if c.picks && !r.picked(c, i) {
			continue
		}
		matched = true
		if c.Ignore {
			r.verdict.pass(hotparam.ReasonIgnored, c.ID)
			return
		}
		switch {
		case r.isUnread(c):
			r.useUnread(c)
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
