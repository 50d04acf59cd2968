package middleware

import (
	"net/http"

	"github.com/hotparam/hotparam"
)

// matcher is what [WithMatcher] gives.
type matcher func(*http.Request) (key string, ignore bool)

// WithMatcher has f decide on the requests that rule ruleID would match. The key that
// f gives takes the place of those that the rule makes: it is the rule's one parameter,
// "key". An empty one: the rule does not match. Ignore exempts the request from all
// rules. Requests that are not HTTP the rule does not match. If f panics the request
// passes. The matchers of a request are asked in the order of the rules, before
// anything is counted.
func WithMatcher(ruleID string, f func(r *http.Request) (key string, ignore bool)) Option {
	return func(o *options) { o.matchers[ruleID] = f }
}

// match asks the matchers of the scratch's route; true: the request is exempt.
func (g *Guard) match(s *scratch, d *hotparam.Decision) (ignored bool) {
	for i := range s.route.rules {
		c := &s.route.rules[i]
		key := ""
		if c.matcher != nil && s.req.http != nil && g.matches(s, c) {
			key, ignored = c.matcher(s.req.http)
		}
		if ignored {
			*d = hotparam.Decision{Allowed: true, Reason: hotparam.ReasonIgnored, Rule: c.ID}
			return true
		}
		s.matched = append(s.matched, key)
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
