package middleware

import (
	"fmt"
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// ruleSet holds the rules in the form that the request path uses.
type ruleSet struct {
	*rules.Rules
	rules     []rule
	routes    routeCache // by method and pattern
	resources routeCache // by name
	unknown   *route     // the route of requests whose pattern is unknown
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

	sharing Sharing // answers requests of hot keys together; nil if nothing does

	set *ruleSet
	// heated holds, by member, the states of keys that were hot when a version of the rule
	// had hot. The tokens that they took also count without hot. It is nil if there are none.
	heated map[string]*hotState

	concrete atomic.Int64 // routes that are paths of the rule's template
}

// readsBody reports whether the rule names a parameter of the body.
func (r *rule) readsBody() bool { return len(r.headReaders) < len(r.readers) }

// keyless reports whether one bucket holds all of the rule's requests.
func (r *rule) keyless() bool { return r.By.Kind == rules.ByNone && r.matcher == nil }

// compile prepares rules for the request path, with the state of the rules that they replace.
func compile(ruleset *rules.Rules, b *specBuilder) (*ruleSet, error) {
	set := &ruleSet{Rules: ruleset, rules: make([]rule, len(ruleset.Rules)), bodyLimits: ruleset.Bodies.WithDefaults()}
	var err error
	if set.redaction, err = rules.NewRedaction(ruleset.Redact); err != nil {
		return nil, err
	}
	b.redaction = set.redaction
	for i := range ruleset.Rules {
		r := &set.rules[i]
		r.Rule, r.set = &ruleset.Rules[i], set
		r.prefix = []byte(r.ID + " ")
		r.matcher = b.opts.matchers[r.ID]
		r.overlaps = r.Overlaps()
		r.addsUp = r.overlaps || r.HasShare()
		r.costs = r.HasCost()
		for j := range r.Match.Query {
			need := r.Match.Query[j].Param()
			need.Value = r.Match.Query[j].Value
			r.needs = append(r.needs, need)
		}
		set.findRedacted(r)
		if err := set.addReaders(r, b.opts); err != nil {
			return nil, fmt.Errorf("rule %q: %w", r.ID, err)
		}
		if err := r.compile(b); err != nil {
			return nil, fmt.Errorf("rule %q: %w", r.ID, err)
		}
		if err := r.compileOnHot(b.opts); err != nil {
			return nil, fmt.Errorf("rule %q: %w", r.ID, err)
		}
		set.shares = set.shares || r.sharing != nil
		set.costs = set.costs || r.costs
	}
	set.routes.init()
	set.resources.init()
	set.unknown = set.makeUnknown()
	return set, nil
}

// compile makes the limits of the rule and its exceptions.
func (r *rule) compile(b *specBuilder) (err error) {
	if r.spec, err = b.newSpec(r, r.Limit, r.ID); err != nil {
		return err
	}
	list := make([]exception, len(r.Except))
	for i := range r.Except {
		x := &r.Except[i]
		list[i] = exception{Exception: x, spec: r.spec}
		if x.Limit != nil {
			if list[i].spec, err = b.newSpec(r, x.Limit, b.exceptionName(r, x)); err != nil {
				return fmt.Errorf("exception %d: %w", i+1, err)
			}
		}
	}
	if len(list) > 0 {
		r.except = newExceptions(list)
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

// byID returns the rule with this id, or nil.
func (s *ruleSet) byID(id string) *rule {
	for i := range s.rules {
		if s.rules[i].ID == id {
			return &s.rules[i]
		}
	}
	return nil
}
