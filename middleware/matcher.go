package middleware

import (
	"net/http"

	"github.com/hotparam/hotparam/rules"
)

// matcher is the function of a [WithMatcher].
type matcher func(*http.Request) (key string, ignore bool)

// WithMatcher sets f, which decides on the requests that the rule ruleID would match. The
// key that f returns replaces the keys of the rule: it is the value of one parameter, "key".
// An empty key means that the rule does not match. The rule matches no requests that are not
// HTTP. If f panics, the request passes.
//
// The matchers of a request are called in the order of the rules, before anything is
// counted. The first that returns a key or ignore decides. Ignore exempts the request from
// all rules; after another matcher has returned a key, it only means that this rule does
// not match. With evaluate: first, a matching rule without a matcher decides too, and the
// matchers of later rules are not called.
func WithMatcher(ruleID string, f func(r *http.Request) (key string, ignore bool)) Option {
	return func(o *options) { o.matchers[ruleID] = f }
}

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

// useMatcherKey implements useKey with the key that a matcher returned.
func (r *request) useMatcherKey(c *candidate, key string) {
	p := &r.params.custom
	p.Reset()
	p.Add(rules.Param{Name: "key", Value: key})
	r.sortParams(p)
	r.startKey(c)
	r.key = p.AppendOne(r.key, 0)
	r.useKey(c)
}
