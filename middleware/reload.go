package middleware

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// Reload replaces the rules, including those of the collector, while requests are served. rules
// must not change afterwards. Everything may change except the namespace and max_keys: rules
// may be added and removed, and may get or lose hot. Requests in progress keep the old rules.
// If Reload fails, the present rules stay in force.
//
// The tokens that were taken, reserved or owed carry over by the rule's id and, for an exception
// of a rule without hot, its values. They survive a time without the rule. With another
// algorithm, a limit starts afresh; if the old algorithm returns, so does its state. Permits are
// returned to the limit that granted them. Keys stay hot until the aggregator reports that they
// have cooled. Keys that are hot on this instance alone stay hot as long as the rule has a
// threshold that makes them hot.
//
// The collector counts by the new rules before any key is limited by them. The aggregator
// reads the file itself; while its rules differ, it decides by its own.
func (g *Guard) Reload(rules *rules.Rules) error {
	if rules == nil {
		return errors.New("middleware: Reload needs rules")
	}
	rules = g.opts.withClient(rules)
	if err := rules.Validate(); err != nil {
		return fmt.Errorf("middleware: %w", err)
	}
	g.sharing.mu.Lock()
	defer g.sharing.mu.Unlock()
	old := g.rules.Load()
	if old.Namespace != rules.Namespace {
		return fmt.Errorf("middleware: reload: namespace %q was %q: that needs a restart", rules.Namespace, old.Namespace)
	}
	if old.LimitKeys != rules.LimitKeys {
		return fmt.Errorf("middleware: reload: max_keys %d was %d: that needs a restart", rules.LimitKeys, old.LimitKeys)
	}
	if err := g.install(rules, old); err != nil {
		return fmt.Errorf("middleware: reload: %w", err)
	}
	g.renewControls()
	return nil
}

// install puts rules in force, with the state of the old ones.
func (g *Guard) install(rules *rules.Rules, old *ruleSet) error {
	if err := g.needsNoCounts(rules); err != nil {
		return err
	}
	b := &specBuilder{
		opts: &g.opts, maxKeys: g.maxKeys, decisionsOf: g.decisionsOf, instances: g.instances(),
		old: maps.Clone(g.former.specs), permits: make(map[string]*semaphore.Memory),
	}
	if old != nil {
		for _, s := range old.allSpecs {
			b.old[s.name] = s
		}
	}
	for name, s := range b.old {
		if s.kept.permits != nil {
			rule, _, _ := strings.Cut(name, "?") // the rest names an exception
			b.permits[rule] = s.kept.permits
		}
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
		if err := f(now); err != nil { // impossible, since compile has made such a quota
			return err
		}
	}
	if old == nil {
		g.rules.Store(set)
	} else {
		g.replace(old, set)
	}
	g.warnOfSmallParts(set)
	return nil
}

// needsNoCounts returns an error if a rule has hot and the guard has no collector.
func (g *Guard) needsNoCounts(rules *rules.Rules) error {
	for i := range rules.Rules {
		if r := &rules.Rules[i]; g.counts == nil && len(r.Hot) > 0 {
			return fmt.Errorf("rule %q has hot, and this guard has no collector to count its keys", r.ID)
		}
	}
	return nil
}

// replace puts set in force instead of old. The collector changes first, so that keys are
// counted before they are limited.
func (g *Guard) replace(old, set *ruleSet) {
	g.heated = g.heatedBy(old, set)
	for i := range set.rules {
		set.rules[i].heated = g.heated[set.rules[i].ID]
	}
	if g.counts != nil {
		g.counts.Reload(set.Rules)
	}
	before := g.tableUses()
	g.rules.Store(set)
	g.former.update(old, set)
	kept := g.tableUses()
	for t, n := range before {
		if _, ok := kept[t]; !ok {
			if g.sharing.gone == nil {
				g.sharing.gone = make(map[string]displacement)
			}
			g.sharing.gone[t.rule] = g.sharing.gone[t.rule].plus(n)
		}
	}
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

// heatedBy returns the hot-key states to keep after a reload: all states of rules that lose
// their thresholds or are removed now, and earlier states whose bucket is not full yet.
func (g *Guard) heatedBy(old, set *ruleSet) heatedStates {
	next, n := make(heatedStates), 0
	add := func(rule, member string, state *hotState) {
		if n >= maxHeated {
			return
		}
		if next[rule] == nil {
			next[rule] = make(map[string]*hotState)
		}
		next[rule][member] = state
		n++
	}
	lost := make(map[string]bool)
	for i := range old.rules {
		if was := &old.rules[i]; len(was.Hot) > 0 {
			r := set.byID(was.ID)
			lost[was.ID] = r == nil || len(r.Hot) == 0
		}
	}
	g.hot.Payloads(func(member string, state *hotState) {
		if rule, _, _ := strings.Cut(member, " "); lost[rule] {
			add(rule, member, state)
		}
	})
	now := g.opts.clock()
	for rule, states := range g.heated {
		for member, state := range states {
			if state.timeToFull(now) > 0 {
				add(rule, member, state)
			}
		}
	}
	return next
}
