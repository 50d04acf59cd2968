package middleware

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

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
		set.shares = set.shares || r.shared != nil
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

// Values are redacted before they are written into a key, so every use of keys is redacted:
// counting, limits in Redis, the hot set. The file has plain values to compare with, so match
// and priority read the parameters, and exceptions read a second, plain text of the key.

// findRedacted determines the effects of redaction on the rule.
func (s *ruleSet) findRedacted(r *rule) {
	redacts := func(p rules.Param) bool { return s.redaction.Redacts(p.Source, p.Name) }
	r.redacts = slices.ContainsFunc(r.By.Names, redacts) || len(r.By.Names) == 0 && s.redaction.Concerns(rules.Query)
	r.reveals = slices.ContainsFunc(r.Except, func(x rules.Exception) bool {
		return slices.ContainsFunc(x.Values, func(v rules.QueryMatch) bool { return redacts(v.Param()) })
	})
}

// addReaders adds a reader to the rule for each parameter that it names. Rules that name the
// same parameter share the reader.
func (s *ruleSet) addReaders(r *rule, o *options) error {
	for _, p := range r.Named() {
		if !hasReader(p.Source) {
			continue
		}
		i := slices.IndexFunc(s.readers, func(x *paramReader) bool { return x.param == p })
		if i < 0 {
			x := &paramReader{param: p, client: &s.Client}
			if err := x.prepare(o); err != nil {
				return err
			}
			i = len(s.readers)
			s.readers = append(s.readers, x)
		}
		if x := s.readers[i]; !slices.Contains(r.readers, x) {
			r.readers = append(r.readers, x)
		}
	}
	var ofBody []*paramReader
	for _, x := range r.readers {
		if x.param.Source.ReadsBody() {
			ofBody = append(ofBody, x)
		} else {
			r.headReaders = append(r.headReaders, x)
		}
	}
	r.readers = slices.Concat(r.headReaders, ofBody)
	r.body = bodySources(r.By.Names) | bodySources(r.needs)
	r.keyReaders = slices.ContainsFunc(r.By.Names, func(p rules.Param) bool { return hasReader(p.Source) })
	return nil
}

// hasReader reports whether parameters of a source are read only for rules that name them.
func hasReader(s rules.Source) bool { return s != rules.Query && s != rules.Path }

// prepare computes what the reader needs for its source.
func (x *paramReader) prepare(o *options) error {
	switch x.param.Source {
	case rules.Header:
		x.header = http.CanonicalHeaderKey(x.param.Name)
	case rules.Addr:
		level, ok := base.ParseAddrLevel(x.param.Name)
		if !ok {
			return fmt.Errorf("an address has no level %q: %s", x.param.Name, base.AddrLevelHint)
		}
		x.level = level
	case rules.Ctx:
		return x.prepareCtx(o)
	case rules.JSON:
		steps, message := base.ParseJSONPath(x.param.Name)
		if message != "" {
			return fmt.Errorf("json:%s: %s", x.param.Name, message)
		}
		x.steps = steps
	}
	return nil
}

// prepareCtx gives the reader the program's function for its name.
func (x *paramReader) prepareCtx(o *options) error {
	name := x.param.Name
	if x.value = o.params[name]; x.value == nil && o.anyParam != nil {
		x.value = func(ctx context.Context) string { return o.anyParam(ctx, name) }
	}
	if x.value == nil {
		return fmt.Errorf("no function has ctx:%s: give the guard middleware.WithParam(%q, …)", x.param.Name, x.param.Name)
	}
	return nil
}

// compileOnHot gets what answers the requests of the rule's hot keys together.
func (r *rule) compileOnHot(o *options) error {
	if r.OnHot == nil || o.shadow {
		return nil
	}
	if o.sharer == nil {
		o.log.Warn("on_hot is ignored, since this guard keeps no answers: hotparam.Open makes one that does", "rule", r.ID)
		return nil
	}
	sharing, err := o.sharer.ForRule(r.Rule)
	if err != nil {
		return fmt.Errorf("on_hot: %w", err)
	}
	r.shared = &sharedRule{r.Rule, sharing, r.spec.decisions}
	return nil
}
