package middleware

import (
	"strings"

	"github.com/hotparam/hotparam"
)

// Request is what rules look at.
type Request struct {
	Method string
	// Path is the path as it travels, escaped.
	Path string
	// Query is the raw query, without "?".
	Query string
	// Pattern is the route's pattern as the router knows it ("GET /u/{id}",
	// "/u/{id}"); empty when it is not known: then keys have the path itself.
	Pattern string
	// Caller is who sends the request, such as an address or a tenant; empty: not
	// known. Of keys that are hot the callers with the most requests are told.
	Caller string
}

// Check counts a request and decides on it. Of rules that count costs it asks
// whether there is room, and counts nothing: see [Guard.Begin].
func (g *Guard) Check(req Request) (d hotparam.Decision) {
	defer g.failOpen(&d)
	r := g.routeOf(&req)
	if r.plain == nil || !g.plain(r.plain, &req, &d) {
		g.check(&req, r, nil, &d)
	}
	return d
}

func (g *Guard) routeOf(req *Request) *route {
	if req.Pattern == "" {
		return g.rules.unknown
	}
	return g.rules.ofPattern(req.Method, req.Pattern)
}

// check is Check for any rules.
func (g *Guard) check(req *Request, r *route, t *Ticket, d *hotparam.Decision) {
	s := g.begin()
	s.req, s.route, s.ticket = *req, r, t
	if r.byPath {
		s.canonicalPath()
	}
	g.decide(s, d)
	g.end(s)
}

// failOpen turns a panic of ours into a request that passes.
func (g *Guard) failOpen(d *hotparam.Decision) {
	if recover() != nil {
		g.panics.Add(1)
		*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
	}
}

// decide applies the rules of the scratch's route. It writes the decision where
// the caller wants it, since copies of it would cost as much as a rule.
func (g *Guard) decide(s *scratch, d *hotparam.Decision) {
	d.Allowed = true
	matched := false
	for i := range s.route.rules {
		c := &s.route.rules[i]
		if c.picks && !g.matches(s, c) {
			continue
		}
		matched = true
		if c.Ignore {
			*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonIgnored, Rule: c.ID}
			return
		}
		if c.By.Kind == hotparam.ByNone {
			g.one(s, c, d)
		} else {
			g.keys(s, c, d)
		}
		if g.rules.Evaluate == hotparam.EvaluateFirst {
			break
		}
	}
	if !matched && g.rules.DenyNoMatch {
		*d = hotparam.Decision{Reason: hotparam.ReasonNoMatch}
		s.denied = true
	}
	if s.denied {
		g.refuse(s, d)
	}
}

// refuse settles a request that was denied.
func (g *Guard) refuse(s *scratch, d *hotparam.Decision) {
	s.giveBack()
	if g.opts.shadow {
		g.shadowed.Add(1)
		*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonShadow, Rule: d.Rule}
		return
	}
	g.limited.Add(1)
	if d.Reason == hotparam.ReasonBlocked {
		g.blocked.Add(1)
	}
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
