package middleware

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
)

// Reload replaces the rules while requests are served. rules must not change afterwards.
// Requests that are in progress keep to the old rules. What was taken, reserved or owed
// carries over by the rule's id and, for an exception, its values, if the rule still has
// one bucket, or keys, as before. With another algorithm a limit starts afresh; if the
// algorithm is changed back, its earlier state is still there. Permits are given back to
// the limit that granted them.
//
// The collector and the aggregator count by the rules with hot. Of these only match and
// limits can change; any other change needs a restart of instances and aggregators. If
// Reload fails, the present rules stay in force.
func (g *Guard) Reload(rules *hotparam.Rules) error {
	if rules == nil {
		return errors.New("middleware: Reload needs rules")
	}
	if err := rules.Validate(); err != nil {
		return fmt.Errorf("middleware: %w", err)
	}
	g.sharing.mu.Lock()
	defer g.sharing.mu.Unlock()
	old := g.rules.Load()
	if err := reloadable(old.Rules, rules); err != nil {
		return fmt.Errorf("middleware: reload: %w", err)
	}
	if err := g.install(rules, old); err != nil {
		return fmt.Errorf("middleware: reload: %w", err)
	}
	g.renewControls()
	return nil
}

// install puts rules in force, with the state of the old ones.
func (g *Guard) install(rules *hotparam.Rules, old *ruleSet) error {
	b := &specBuilder{opts: &g.opts, decisionsOf: g.decisionsOf, instances: g.instances(), old: make(map[string]*limitSpec)}
	if old != nil {
		old.allSpecs(func(_ *rule, s *limitSpec) bool {
			b.old[s.name] = s
			return true
		})
	}
	set, err := compile(rules, b)
	if err != nil {
		return err
	}
	set.concrete = &g.concrete
	if old == nil {
		if err := g.opts.validate(set); err != nil {
			return err
		}
	}
	var now time.Duration
	if len(b.adopt) > 0 {
		now = g.opts.clock()
	}
	for _, f := range b.adopt {
		if err := f(now); err != nil { // compile has made one such
			return err
		}
	}
	g.rules.Store(set)
	g.warnOfSmallParts(set)
	if old != nil {
		g.keepOverflows(old, set)
	}
	return nil
}

// validate returns an error if an option names a rule that does not exist. A reload may
// remove the rule, and add it again.
func (o *options) validate(set *ruleSet) error {
	for id := range o.matchers {
		if set.byID(id) == nil {
			return fmt.Errorf("WithMatcher: there is no rule %q", id)
		}
	}
	for id := range o.serve {
		if set.byID(id) == nil {
			return fmt.Errorf("WithServe: there is no rule %q", id)
		}
	}
	return nil
}

// reloadable returns an error if rules with hot have changes that need a restart.
func reloadable(old, rules *hotparam.Rules) error {
	if old.Namespace != rules.Namespace {
		return fmt.Errorf("namespace %q was %q: that needs a restart", rules.Namespace, old.Namespace)
	}
	was := make(map[string]*hotparam.Rule)
	for i := range old.Rules {
		if r := &old.Rules[i]; len(r.Hot) > 0 {
			was[r.ID] = r
		}
	}
	for i := range rules.Rules {
		r := &rules.Rules[i]
		if len(r.Hot) == 0 {
			continue
		}
		if before := was[r.ID]; before == nil || !sameCounts(before, r) {
			return fmt.Errorf("rule %q has hot and is new, or counts in another way: that needs a restart of instances and aggregators", r.ID)
		}
		delete(was, r.ID)
	}
	for id := range was {
		return fmt.Errorf("rule %q with hot is gone: that needs a restart of instances and aggregators", id)
	}
	return nil
}

// sameCounts reports whether two versions of a rule with hot differ only in match and in
// limits.
func sameCounts(a, b *hotparam.Rule) bool {
	return slices.Equal(a.Hot, b.Hot) && a.Count == b.Count && a.Prefix == b.Prefix && a.ParamsOnly == b.ParamsOnly &&
		a.By.Kind == b.By.Kind && slices.Equal(a.By.Names, b.By.Names) &&
		slices.EqualFunc(a.Except, b.Except, func(x, y hotparam.Exception) bool {
			return x.Action == y.Action && x.Rate == y.Rate && slices.Equal(x.Values, y.Values)
		})
}
