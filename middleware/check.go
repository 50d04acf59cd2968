package middleware

import (
	"context"
	"net/http"
	"strings"

	"github.com/hotparam/hotparam"
)

// Request is what rules look at.
type Request struct {
	// Context ends a wait: a request whose context ends while it waits is refused, and
	// gives back what it had taken. No request waits beyond its context's deadline.
	// Nil: nothing ends it.
	Context context.Context
	Method  string
	// Path is the path as it travels, escaped.
	Path string
	// Query is the raw query, without "?".
	Query string
	// Pattern is the route's pattern as the router knows it ("GET /u/{id}",
	// "/u/{id}"); empty when it is not known: then keys have the path itself. Of
	// what is not HTTP it is the resource.
	Pattern string
	// Caller is who sends the request, such as an address or a tenant; empty: not
	// known. Of keys that are hot the callers with the most requests are told.
	Caller string

	http *http.Request // for matchers; nil: it is none
}

// context is the request's, or one that never ends.
func (r *Request) context() context.Context {
	if r.Context == nil {
		return context.Background()
	}
	return r.Context
}

// Check counts a request and decides on it, and waits where a rule says so. It holds
// nothing afterwards: of rules that count costs it asks whether there is room, and
// counts nothing; of those with concurrency it gets a permit, and gives it back at
// once. See [Guard.Begin].
func (g *Guard) Check(req Request) (d hotparam.Decision) {
	g.pass(&req, false, &d)
	return d
}

// outcome is what else becomes of a request.
type outcome struct {
	ticket *Ticket // nil: there is nothing to tell at its end
	terms  *terms  // that decided; nil: none did
}

// pass is Check and, of what holds, Begin.
func (g *Guard) pass(req *Request, holds bool, d *hotparam.Decision) (o outcome) {
	defer g.failOpen(d)
	g.before(req)
	r := g.routeOf(req)
	done := false
	if r.plain != nil {
		o, done = g.plain(r, req, holds, d)
	}
	if !done {
		o = g.check(req, r, holds, d)
	}
	g.after(req, d)
	return o
}

func (g *Guard) routeOf(req *Request) *route {
	set := g.rules.Load()
	if req.Pattern == "" {
		return set.unknown
	}
	return set.ofPattern(req.Method, req.Pattern)
}

// check is pass for any rules.
func (g *Guard) check(req *Request, r *route, holds bool, d *hotparam.Decision) outcome {
	s := g.begin()
	s.req, s.route, s.holds = *req, r, holds
	if r.byPath {
		s.canonicalPath()
	}
	g.decide(s, d)
	return g.settle(s, d)
}

// failOpen turns a panic of ours into a request that passes.
func (g *Guard) failOpen(d *hotparam.Decision) {
	if recover() != nil {
		g.panics.Add(1)
		*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
	}
}

// decide asks what this process knows by the rules of the scratch's route. It
// writes the decision where the caller wants it, since copies of it would cost as
// much as a rule.
func (g *Guard) decide(s *scratch, d *hotparam.Decision) {
	d.Allowed = true
	matched := false
	if s.route.matchers && g.match(s, d) {
		return
	}
	for i := range s.route.rules {
		c := &s.route.rules[i]
		if c.picks && !g.picked(s, c, i) {
			continue
		}
		matched = true
		if c.Ignore {
			*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonIgnored, Rule: c.ID}
			return
		}
		switch {
		case c.matcher != nil:
			g.useMatched(s, c, s.matched[i], d)
		case c.By.Kind == hotparam.ByNone:
			g.one(s, c, d)
		default:
			g.keys(s, c, d)
		}
		if s.route.set.Evaluate == hotparam.EvaluateFirst {
			break
		}
	}
	if !matched && s.route.set.DenyNoMatch {
		*d = hotparam.Decision{Reason: hotparam.ReasonNoMatch}
		s.denied = true
	}
}

// settle has the request do what it has yet to do, now that the limits of this
// process are known: ask others, wait, get permits. It gives the scratch back.
func (g *Guard) settle(s *scratch, d *hotparam.Decision) outcome {
	if !s.denied && len(s.exact) > 0 {
		g.askExact(s, d)
	}
	if !s.denied && (s.delay > 0 || len(s.wanted) > 0) {
		p := g.leave(s)
		g.end(s)
		return p.pass(d)
	}
	o := outcome{s.ticket, s.decider}
	if s.denied {
		g.giveBack(&s.course)
		g.refuse(&s.ruling, d)
		o.ticket = o.ticket.unless(!d.Allowed)
	}
	g.end(s)
	return o
}

// refuse settles a request that was denied.
func (g *Guard) refuse(r *ruling, d *hotparam.Decision) {
	if g.opts.shadow {
		g.shadowed.Add(1)
		*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonShadow, Rule: d.Rule}
		return
	}
	g.limited.Add(1)
	switch d.Reason {
	case hotparam.ReasonBlocked:
		g.blocked.Add(1)
	case hotparam.ReasonBusy:
		g.busy.Add(1)
	case hotparam.ReasonAway:
		g.away.Add(1)
	}
	if r.serves(d) {
		g.served.Add(1)
		d.Reason = hotparam.ReasonServed
	}
}

// serves tells whether the rule that denied has an answer in place of the handler's.
// What is blocked gets none.
func (r *ruling) serves(d *hotparam.Decision) bool {
	return r.decider != nil && r.decider.limit != nil && r.decider.limit.Mode == hotparam.ModeServe &&
		d.Reason != hotparam.ReasonBlocked
}

// picked tells whether the request is one for a rule that does not take all of its
// route.
func (g *Guard) picked(s *scratch, c *candidate, i int) bool {
	if c.matcher != nil {
		return i < len(s.matched) && s.matched[i] != "" // as match has seen
	}
	return g.matches(s, c)
}

// matches tells whether the request is one for the rule.
func (g *Guard) matches(s *scratch, c *candidate) bool {
	if c.byPath && !c.Match.Route.Matches(s.req.Method, s.req.Path) {
		return false
	}
	for _, want := range c.Match.Query {
		s.load(c.values)
		if !s.has(want) {
			return false
		}
	}
	return true
}

func (s *scratch) has(want hotparam.QueryMatch) bool {
	for i := range s.params.Len() {
		p := s.params.At(i)
		if p.Source == hotparam.Query && p.Name == want.Name && wildcard(want.Value, p.Value) {
			return true
		}
	}
	return false
}

// wildcard matches a value against a pattern in which "*" stands for any run of
// bytes.
func wildcard(pattern, value string) bool {
	head, rest, found := strings.Cut(pattern, "*")
	if !found {
		return value == pattern
	}
	if !strings.HasPrefix(value, head) {
		return false
	}
	value = value[len(head):]
	for {
		part, more, found := strings.Cut(rest, "*")
		if !found {
			return strings.HasSuffix(value, part)
		}
		at := strings.Index(value, part)
		if at < 0 {
			return false
		}
		value, rest = value[at+len(part):], more
	}
}
