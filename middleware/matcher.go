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

// askMatchers asks the matchers of the request's route, keeps their keys, and reports
// whether the request is exempt.
func (r *request) askMatchers() (exempt bool) {
	first := r.route.set.Evaluate == hotparam.EvaluateFirst
	answered := false // a matcher gave a key
	for i := range r.route.rules {
		c := &r.route.rules[i]
		key, ignore := "", false
		isMatch := !c.picks
		switch {
		case c.matcher == nil && first:
			isMatch = isMatch || r.matches(c)
		case c.matcher == nil: // all rules count, whatever this one says
		case r.in.http != nil && r.matches(c):
			key, ignore = c.matcher(r.in.http)
			if ignore && !answered {
				r.verdict.pass(hotparam.ReasonIgnored, c.ID)
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
			return false // the rule decides
		}
	}
	return false
}

// useMatcherKey is useKey with a matcher's key.
func (r *request) useMatcherKey(c *candidate, key string) {
	p := &r.params.custom
	p.Reset()
	p.Add(hotparam.Param{Name: "key", Value: key})
	r.startKey(c)
	r.key = p.AppendOne(r.key, 0)
	r.useKey(c)
}
