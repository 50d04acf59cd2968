package middleware

import (
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// askMatchers calls the matchers of the request's route and keeps their keys. It reports
// whether the request is exempt.
func (r *request) askMatchers() (exempt bool) {
	first := r.route.set.Evaluate == rules.EvaluateFirst
	answered := false // whether a matcher has returned a key
	for i := range r.route.rules {
		c := &r.route.rules[i]
		key, ignore := "", false
		isMatch := !c.picks
		switch {
		case c.matcher == nil && first:
			isMatch = isMatch || r.matches(c)
		case c.matcher == nil: // all rules count, whether this one matches or not
		case r.matches(c) && r.in.http() != nil:
			key, ignore = c.matcher(r.in.HTTP)
			if ignore && !answered {
				r.verdict.pass(rules.ReasonIgnored, c.ID)
				return true
			}
			if ignore {
				key = ""
			}
			isMatch = key != ""
			answered = answered || isMatch
		}
		r.matched = append(r.matched, key)
		if isMatch && first {
			return false // this rule decides
		}
	}
	return false
}

// canonicalPath unescapes characters that need not be escaped. Routers treat /%75/7 like
// /u/7, and rules must do the same.
func (r *reading) canonicalPath() {
	if strings.IndexByte(r.in.Path, '%') < 0 {
		return
	}
	r.path = base.AppendPath(r.path[:0], r.in.Path)
	if string(r.path) != r.in.Path {
		r.in.Path = string(r.path)
	}
}

// picked reports whether rule i of the route, which does not match all of the route's
// requests, matches this one.
func (r *request) picked(c *candidate, i int) bool {
	if c.matcher != nil {
		return i < len(r.matched) && r.matched[i] != "" // found by askMatchers
	}
	return r.matches(c)
}

// matches reports whether the request has the path and the parameters of a rule's match.
func (r *reading) matches(c *candidate) bool { return r.matchesHead(c) && r.matchesBody(c) }

// matchesHead implements matches except for parameters of the body, which it does not read.
func (r *reading) matchesHead(c *candidate) bool {
	if c.byPath && !c.Match.Route.Matches(r.in.Method, r.in.Path) {
		return false
	}
	for _, want := range c.needs {
		if !want.Source.ReadsBody() && !hasParam(r.loadHead(c), want) {
			return false
		}
	}
	return true
}

// matchesBody reports whether the request has the parameters of the body that a rule's match
// names. A body that could not be read matches any parameter of its source. But it never
// matches a rule that ignores requests, nor one with unread: pass.
func (r *reading) matchesBody(c *candidate) bool {
	if c.body == 0 {
		return true
	}
	for _, want := range c.needs {
		if want.Source.ReadsBody() && !hasParam(r.loadParams(c), want) && (c.Ignore || !r.isUnread(c) || r.body.source != want.Source) {
			return false
		}
	}
	return c.Unread != rules.UnreadPass || !r.isUnread(c)
}

// hasParam reports whether the request has a parameter of this source, name and value.
func hasParam(params *keytext.Params, want rules.Param) bool {
	for i := range params.Len() {
		p := params.At(i)
		if p.Source == want.Source && p.Name == want.Name && matchesWildcard(want.Value, p.Value) {
			return true
		}
	}
	return false
}

// matchesWildcard reports whether a value matches a pattern in which "*" matches any run
// of bytes.
func matchesWildcard(pattern, value string) bool {
	head, tail, found := strings.Cut(pattern, "*")
	if !found {
		return value == pattern
	}
	if !strings.HasPrefix(value, head) {
		return false
	}
	value = value[len(head):]
	for {
		part, more, found := strings.Cut(tail, "*")
		if !found {
			return strings.HasSuffix(value, part)
		}
		i := strings.Index(value, part)
		if i < 0 {
			return false
		}
		value, tail = value[i+len(part):], more
	}
}

// isUnread reports whether the rule depends on the body and the body could not be read.
func (r *reading) isUnread(c *candidate) bool {
	if c.body == 0 {
		return false
	}
	r.loadParams(c)
	return r.body.state == bodyUnread && c.body.has(r.body.source)
}
