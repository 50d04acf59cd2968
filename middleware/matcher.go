package middleware

import (
	"net/http"

	"github.com/hotparam/hotparam"
)

// matcher is what [WithMatcher] gives.
type matcher func(*http.Request) (key string, ignore bool)

// WithMatcher has f decide on the requests that rule ruleID would match. The key that
// f returns takes the place of those that the rule makes: it is the rule's one
// parameter, "key". An empty key means that the rule does not match. Requests that are
// not HTTP the rule does not match. If f panics the request passes.
//
// The matchers of a request are asked in the order of the rules, before anything is
// counted, and the first that answers wins, by a key or by ignore. Ignore exempts the
// request from all rules; after a key of an earlier rule's matcher it means only that
// this rule does not match. With evaluate: first a rule that matches wins like a key, and the
// matchers of later rules are not asked.
func WithMatcher(ruleID string, f func(r *http.Request) (key string, ignore bool)) Option {
	return func(o *options) { o.matchers[ruleID] = f }
}

// match asks the matchers of the scratch's route and reports whether the request is
// exempt.
func (g *Guard) match(s *scratch, d *hotparam.Decision) (exempt bool) {
	answered := false // a matcher gave a key
	for i := range s.route.rules {
		c := &s.route.rules[i]
		key, ignore := "", false
		isMatch := !c.picks
		switch {
		case c.matcher == nil && s.route.set.Evaluate == hotparam.EvaluateFirst:
			isMatch = isMatch || g.matches(s, c)
		case c.matcher == nil: // all rules count, whatever this one says
		case s.req.http != nil && g.matches(s, c):
			key, ignore = c.matcher(s.req.http)
			if ignore && !answered {
				*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonIgnored, Rule: c.ID}
				return true
			}
			if ignore {
				key = ""
			}
			isMatch = key != ""
			answered = answered || isMatch
		}
		s.matched = append(s.matched, key)
		if isMatch && s.route.set.Evaluate == hotparam.EvaluateFirst {
			return false // the rule decides
		}
	}
	return false
}

// useMatched is use with a matcher's key.
func (g *Guard) useMatched(s *scratch, c *candidate, key string, d *hotparam.Decision) {
	s.own.Reset()
	s.own.Add(hotparam.Param{Name: "key", Value: key})
	s.startKey(c)
	s.key = s.own.AppendOne(s.key, 0)
	g.use(s, c, d)
}
