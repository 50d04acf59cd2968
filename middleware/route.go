package middleware

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// makeHead returns the beginning of the rule's keys on a route of this text.
func (r *rule) makeHead(route string) []byte {
	if r.ParamsOnly {
		return r.prefix
	}
	return append(keytext.AppendRoute(slices.Clip(r.prefix), route), '?')
}

// nameOf returns the route's name if the rule's keys do not contain it, or "".
func (r *rule) nameOf(route string) string {
	if r.ParamsOnly {
		return route
	}
	return ""
}

func newTotal(head []byte) total {
	key := append(slices.Clip(head), base.TotalParams...)
	return total{key, rules.Hash(key)}
}

// ofPattern returns the route of a request with a pattern.
func (s *ruleSet) ofPattern(method, pattern string) *route {
	if r := s.routes.lookup(method, pattern); r != nil {
		return r
	}
	r := s.makeRoute(method, pattern)
	s.keep(&s.routes, method, pattern, r)
	return r
}

// keep adds a route to a cache if there is room.
func (s *ruleSet) keep(cache *routeCache[route], method, name string, r *route) {
	if cache.add(method, name, r) {
		s.checkConcrete(method, name)
	} else if cache.full() {
		s.concrete.warnOfFull()
	}
}

// splitPattern returns the method of a pattern, or the request's if it has none, and the rest.
func splitPattern(method, pattern string) (ownMethod, path string) {
	if space := strings.IndexAny(pattern, " \t"); space >= 0 {
		return pattern[:space], strings.TrimLeft(pattern[space:], " \t")
	}
	return method, pattern
}

func (s *ruleSet) makeRoute(method, pattern string) *route {
	ownMethod, path := splitPattern(method, pattern) // a GET pattern serves HEAD too
	text := ownMethod + " " + path
	if s.holdsRedacted(method, path) {
		text = ownMethod + " " + string(keytext.NewRedactor(s.redaction).AppendPath(nil, path))
	}
	r := &route{set: s}
	if slash := strings.IndexByte(path, '/'); slash > 0 {
		path = path[slash:] // the host is part of the key, not of the match
	}
	r.pattern, _ = rules.ParseRoute(path)
	for i := range s.rules {
		c := candidate{rule: &s.rules[i], head: s.rules[i].makeHead(text), name: s.rules[i].nameOf(text), values: wildcards(&r.pattern)}
		switch match := &c.Match.Route; {
		case match.IsAny(), match.SamePattern(method, path), match.SamePattern(ownMethod, path):
		case !match.MayMatch(method, r.pattern):
			continue
		default:
			c.byPath = true
			if values := wildcards(match); values != nil {
				c.values = values // the names in the rule's pattern
			}
		}
		r.rules = append(r.rules, c)
	}
	r.byPath = slices.ContainsFunc(r.rules, func(c candidate) bool { return c.byPath || c.values != nil })
	s.finish(r)
	return r
}

// ofResource returns the route of a resource, which has a name and no path.
func (s *ruleSet) ofResource(name string) *route {
	if r := s.resources.lookup("", name); r != nil {
		return r
	}
	r := &route{set: s}
	for i := range s.rules {
		if s.rules[i].Match.Route.Resource(name) {
			r.rules = append(r.rules, candidate{rule: &s.rules[i], head: s.rules[i].makeHead(name), name: s.rules[i].nameOf(name)})
		}
	}
	s.finish(r)
	s.keep(&s.resources, "", name, r)
	return r
}

// makeUnknown makes the route of requests whose pattern is unknown. The path decides on every
// rule, unless the rule matches any route.
func (s *ruleSet) makeUnknown() *route {
	r := &route{set: s, byPath: true}
	for i := range s.rules {
		match := &s.rules[i].Match.Route
		c := candidate{rule: &s.rules[i], text: string(keytext.AppendRoute(nil, match.Path())), values: wildcards(match), byPath: !match.IsAny()}
		if c.ParamsOnly {
			c.head, c.name = c.makeHead(""), c.text
		}
		r.rules = append(r.rules, c)
	}
	s.finish(r)
	return r
}

// wildcards returns the pattern if it has path values, or nil.
func wildcards(pattern *rules.Route) *rules.Route {
	if len(pattern.Names()) == 0 {
		return nil
	}
	return pattern
}

// evaluationOrder returns the rule's place in the order of a route's rules where all matching
// rules apply. Rules that exempt from all others come first, and within both kinds the rules
// that read the body come last.
func (r *rule) evaluationOrder() (n int) {
	if !r.Ignore {
		n = 2
	}
	if r.readsBody() {
		n++
	}
	return n
}

// finish computes the fields that depend on the route's rules. With evaluate: all it sorts them.
func (s *ruleSet) finish(r *route) {
	for i := range r.rules {
		c := &r.rules[i]
		if c.overlaps && c.head != nil {
			c.total = newTotal(c.head)
		}
		c.picks = c.byPath || len(c.Match.Query) > 0 || c.matcher != nil || c.body != 0 && c.Unread == rules.UnreadPass
		for _, x := range c.readers[len(c.headReaders):] {
			if !slices.Contains(r.bodyReaders, x) {
				r.bodies |= 1 << x.param.Source
				r.bodyReaders = append(r.bodyReaders, x)
			}
		}
		r.matchers = r.matchers || c.matcher != nil
		r.shares = r.shares || c.shared != nil
		r.messages = r.messages || slices.ContainsFunc(c.headReaders, func(x *paramReader) bool { return x.param.Source == rules.RPC })
	}
	if len(r.rules) == 1 && r.rules[0].isPlain() {
		r.plain = &r.rules[0]
	}
	if s.Evaluate == rules.EvaluateAll {
		slices.SortStableFunc(r.rules, func(a, b candidate) int { return cmp.Compare(a.evaluationOrder(), b.evaluationOrder()) })
	}
}

// isPlain reports whether checkPlain can handle requests of a route whose only rule is c.
func (c *candidate) isPlain() bool {
	return !c.picks && !c.Ignore && c.head != nil && c.values == nil && !c.keyReaders && !c.redacts && c.except == nil && len(c.Hot) > 0 &&
		c.Count == rules.Requests && (c.By.Kind == rules.ByAll || c.By.Kind == rules.ByNames)
}

// holdsRedacted reports whether a route is a path that contains a redacted value, "/u/7" instead
// of the template "/u/{id}" of one of the rules.
func (s *ruleSet) holdsRedacted(method, path string) bool {
	if !s.redaction.Concerns(rules.Path) || strings.Contains(path, "{") {
		return false
	}
	path = string(base.AppendPath(nil, path))
	for i := range s.rules {
		template := &s.rules[i].Match.Route
		redacts := func(name string) bool { return s.redaction.Redacts(rules.Path, name) }
		if slices.ContainsFunc(template.Names(), redacts) && matchesPath(template, method, path) {
			return true
		}
	}
	return false
}

// checkConcrete counts a new route that is a path, and logs a rule that has too many of them.
func (s *ruleSet) checkConcrete(method, name string) {
	method, name = splitPattern(method, name)
	if slash := strings.IndexByte(name, '/'); slash < 0 || strings.Contains(name, "{") || strings.HasSuffix(name, "/") {
		return
	} else if slash > 0 {
		name = name[slash:] // since a pattern may begin with a host
	}
	path := string(base.AppendPath(nil, name))
	counted := false
	for i := range s.rules {
		r := &s.rules[i]
		template := &r.Match.Route
		if !hasSegment(template) || !matchesPath(template, method, path) {
			continue
		}
		if counted = true; r.concrete.Add(1) == maxConcrete+1 {
			s.concrete.warn(r.Rule)
		}
	}
	if counted {
		s.concrete.found.Add(1)
	}
}

// matchesPath is like Matches, but accepts a route without a method.
func matchesPath(r *rules.Route, method, path string) bool {
	if method == "" {
		return r.Values(path, nil)
	}
	return r.Matches(method, path)
}
