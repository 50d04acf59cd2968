package middleware

import (
	"context"
	"net/http"

	"github.com/hotparam/hotparam/rules"
)

// Request is the part of a request that rules use.
type Request struct {
	// Context ends a wait: a request whose context ends while it waits is refused and
	// returns the permits and tokens that it had taken. A request never waits beyond its
	// context's deadline. With a nil Context, nothing ends a wait.
	Context context.Context
	Method  string
	// Path is the escaped path, as the client sent it.
	Path string
	// Query is the raw query, without "?".
	Query string
	// Pattern is the route's pattern in the router's syntax ("GET /u/{id}", "/u/{id}").
	// If it is empty, the route is unknown, and keys contain the path itself. For requests
	// that are not HTTP, and so have neither Method nor Path, it is the resource, such as
	// "shop.Search/Find" for an RPC; see [Guard.Enter].
	Pattern string
	// Caller is the sender of the request, such as an address or a tenant, or empty if
	// unknown. The most frequent callers of hot keys are reported.
	Caller string

	// NoWait makes the request never wait, as [WithoutWaiting] does for all requests.
	NoWait bool

	// Steps selects the steps of the check.
	Steps Steps
	run   *runCheck // not nil if the limits are asked for a run of the handler

	// HTTP is the net/http request itself; it may be nil. Rules read headers, cookies, the
	// client's address and the body from it, and functions of options get it. A body that was
	// read is replaced by one that reads the same.
	HTTP *http.Request
	// MakeHTTP returns HTTP for a request that is not of net/http, or nil if there is none. It
	// is called at most once, and only if something needs it. The fields that rules and options
	// use suffice: usually Method, URL, Header, Host and RemoteAddr, and for rules by form or
	// json Body and ContentLength.
	MakeHTTP func() *http.Request
	// Field appends the values of a field of an RPC's message, which rules name rpc:name, to
	// values. It appends nothing if the field is not set. A nil Field means that there is no
	// message.
	Field func(name string, values []string) []string
}

// http returns the net/http request, or nil if there is none.
func (in *Request) http() *http.Request {
	if in.HTTP == nil && in.MakeHTTP != nil {
		in.HTTP = in.MakeHTTP()
		in.MakeHTTP = nil
	}
	return in.HTTP
}

// callerOf returns the request's caller.
func (g *Guard) callerOf(in *Request) string {
	if in.Caller == "" {
		if r := in.http(); r != nil {
			in.Caller = g.opts.caller(r)
		}
	}
	return in.Caller
}

// skips reports whether [WithSkip] lets the request pass.
func (g *Guard) skips(in *Request) bool {
	r := in.http()
	return r != nil && g.opts.skip(r)
}

// Check counts a request, decides on it, and waits if a rule says so. It is for rules that
// count requests. For rules that count costs it only checks that there is room. For rules
// with concurrency it acquires a permit and releases it at once. [Guard.Begin] serves both
// kinds fully.
func (g *Guard) Check(req Request) (d rules.Decision) {
	g.check(&req, false, &d)
	return d
}

// check implements Check and, if holds is set, Begin. It writes the decision to the caller's
// d, since a copy would cost as much as a rule.
func (g *Guard) check(in *Request, holds bool, d *rules.Decision) (t *Ticket) {
	defer g.failOpen(d)
	if g.opts.skip != nil && g.skips(in) {
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

// failOpen lets a request pass if its check has panicked.
func (g *Guard) failOpen(d *rules.Decision) {
	if recover() != nil {
		g.stats.Panics.Add(1)
		*d = rules.Decision{Allowed: true, Reason: rules.ReasonOpen}
	}
}

// countPanic recovers from a panic that has no other effect, and counts it. It is deferred.
func (g *Guard) countPanic() {
	if recover() != nil {
		g.stats.Panics.Add(1)
	}
}

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
		r.verdict = verdict{denied: true, decision: rules.Decision{Reason: rules.ReasonNoMatch}}
	}
}
