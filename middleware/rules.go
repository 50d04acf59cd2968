package middleware

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// ruleSet holds the rules in the form that the request path uses.
type ruleSet struct {
	*rules.Rules
	rules     []rule
	routes    routeCache[route] // by method and pattern
	resources routeCache[route] // by name
	unknown   *route            // the route of requests whose pattern is unknown
	concrete  *concreteRoutes
	redaction *rules.Redaction // nil if there is none
	readers   []*paramReader   // readers of all rules, each once
	shares    bool             // some rules answer requests of hot keys together
	costs     bool             // some rules find hot keys by their cost

	bodyLimits rules.Bodies // with defaults applied
}

// rule is one rule in the form that decides on requests.
type rule struct {
	*rules.Rule
	prefix  []byte // "id ", the beginning of each key
	spec    *limitSpec
	except  *exceptions   // nil if there are none
	matcher matcher       // nil if the rule's own match and by decide
	needs   []rules.Param // parameters that a request must have; "*" in a value matches any text

	readers     []*paramReader // readers of its parameters other than query and path; the body's last
	headReaders []*paramReader // readers without the body's
	keyReaders  bool           // its keys need readers
	body        sourceSet      // the sources of the body that its keys or its match depend on
	redacts     bool           // its keys may have redacted values of the query
	reveals     bool           // its exceptions name redacted values

	overlaps bool // a request makes several keys, and counts for a total too
	addsUp   bool // the aggregator adds up its keys, because they overlap or for a share
	costs    bool // its hot keys are found by what they cost, so their usage is sent and no counts

	shared *sharedRule // answers requests of hot keys together; nil if nothing does

	set *ruleSet
	// heated holds, by member, the states of keys that were hot when a version of the rule
	// had hot. The tokens that they took also count without hot. It is nil if there are none.
	heated map[string]*hotState

	concrete atomic.Int64 // routes that are paths of the rule's template
}

// exceptions are the exceptions of one rule, indexed by parameters of the key's text.
type exceptions struct {
	list []exception
	// exact holds the indices of exceptions that have a value without "*", by one such
	// parameter in canonical form. starred holds the other indices. Both are in order.
	exact   map[string][]int
	starred []int
}

type exception struct {
	*rules.Exception
	spec *limitSpec // the rule's own, unless the exception sets another limit
}

// matcher is the function of a [WithMatcher].
type matcher func(*http.Request) (key string, ignore bool)

// paramReader reads one parameter that rules name from a source other than the query and the
// path. A request is read once by each reader of the rules that it may match.
type paramReader struct {
	param  rules.Param                  // without a value
	header string                       // canonical, as in http.Header
	level  base.AddrLevel               // level of an address
	steps  []base.JSONPathStep          // path of a value in JSON
	value  func(context.Context) string // function of a [WithParam]
	client *rules.Client
}

// readsBody reports whether the rule names a parameter of the body.
func (r *rule) readsBody() bool { return len(r.headReaders) < len(r.readers) }

// keyless reports whether one bucket holds all of the rule's requests.
func (r *rule) keyless() bool { return r.By.Kind == rules.ByNone && r.matcher == nil }

// allowsBare reports whether a request with none of the rule's parameters makes a key of the
// route alone.
func (r *rule) allowsBare() bool { return r.By.Kind == rules.ByAll && !r.ParamsOnly }

// limits reports whether the rule can refuse requests.
func (r *rule) limits() bool {
	return r.Limit != nil || slices.ContainsFunc(r.Except, func(x rules.Exception) bool { return x.Limit != nil || x.Action == rules.Block })
}

// shares reports whether requests of this hot key of the rule are answered together.
func (r *rule) shares(hot *published.Hot) bool {
	return r.shared != nil && !hot.IsExempt()
}

// byID returns the rule with this id, or nil.
func (s *ruleSet) byID(id string) *rule {
	for i := range s.rules {
		if s.rules[i].ID == id {
			return &s.rules[i]
		}
	}
	return nil
}

// allSpecs iterates over the limits of all rules and their exceptions.
func (s *ruleSet) allSpecs(yield func(*rule, *limitSpec) bool) {
	for i := range s.rules {
		r := &s.rules[i]
		if !yield(r, r.spec) {
			return
		}
		if r.except == nil {
			continue
		}
		for j := range r.except.list {
			if spec := r.except.list[j].spec; spec != r.spec && !yield(r, spec) {
				return
			}
		}
	}
}

// sharesPath reports whether some rule may keep answers to requests with this escaped path.
func (s *ruleSet) sharesPath(path string) bool {
	for i := range s.rules {
		if r := &s.rules[i]; r.shared != nil && r.Match.Route.Covers(path) {
			return true
		}
	}
	return false
}

// route holds everything about a route that is computed before its requests arrive.
type route struct {
	set      *ruleSet
	pattern  rules.Route // the router's pattern
	rules    []candidate // in order; with evaluate: all, rules with ignore first, and rules that read the body last
	byPath   bool        // some of the rules need the request's path
	plain    *candidate  // the only rule, if checkPlain can handle it
	matchers bool        // some of the rules have a matcher
	shares   bool        // some of the rules answer requests of hot keys together
	messages bool        // some of the rules name fields of an RPC's message

	bodies      sourceSet      // the sources of the body that some of the rules read
	bodyReaders []*paramReader // the readers of these sources
}

// candidate is a rule that may match requests of the route.
type candidate struct {
	*rule
	// head is the beginning of keys: the rule's id, a space, the route, "?". If head is nil, the
	// pattern is unknown. Keys then begin with the method and text, or with the method and the
	// request's path if text is empty.
	head   []byte
	text   string       // the path of the rule's pattern
	name   string       // the route's name, if keys do not contain it
	values *rules.Route // the pattern whose wildcards name the path values, or nil if there are none
	byPath bool         // whether the rule matches depends on the path
	picks  bool         // not all requests of the route match
	total  total        // counts the route's requests; empty if there is none, or no head
}

// total is a key that all requests of a route count for.
type total struct {
	key  []byte
	hash uint64
}

// sourceSet is a set of sources.
type sourceSet uint16

func (s sourceSet) has(x rules.Source) bool { return s&(1<<x) != 0 }

// bodySources returns the sources of params that are parts of the body.
func bodySources(params []rules.Param) (s sourceSet) {
	for _, p := range params {
		if p.Source.ReadsBody() {
			s |= 1 << p.Source
		}
	}
	return s
}
