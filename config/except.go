package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam"
)

// terms are what exceptions of a rule must agree with.
type terms struct {
	unit            hotparam.Unit
	hotGood, byGood bool // the rule's own are known
}

var exceptSection = section{
	name: "an exception", prefix: "except.",
	fields:  []string{"values", "action", "hot", "limit"},
	example: `for example except: [{values: {q: "phone*"}, action: allow}]`,
}

const valuesExample = `for example values: {q: "phone*"}, or values: {q: [tv, radio]}; a star stands for any text`

// exceptions reads except, then allow, then block: the first that matches counts.
func (r *ruleReader) exceptions(v values, rule *hotparam.Rule, t terms) []hotparam.Exception {
	var all []hotparam.Exception
	if n := v.get("except"); n != nil && n.kind != listKind {
		r.report(n.at, exceptSection.example, "except: want a list, found %s", n.kind)
	} else if n != nil {
		for _, item := range n.items {
			all = append(all, r.exception(item, rule, t)...)
		}
	}
	for _, short := range []struct {
		name   string
		action hotparam.Action
	}{{"allow", hotparam.Allow}, {"block", hotparam.Block}} {
		n := v.get(short.name)
		if n == nil {
			continue
		}
		items := []*node{n}
		if n.kind == listKind {
			items = n.items
		}
		for _, item := range items {
			for _, values := range r.values(item, short.name, rule, t) {
				all = append(all, hotparam.Exception{Values: values, Action: short.action})
			}
		}
	}
	if len(all) > hotparam.MaxExceptions {
		for _, name := range []string{"except", "allow", "block"} {
			if n := v.get(name); n != nil {
				r.report(n.at, "use patterns: a star stands for any text", "%d exceptions: a rule has at most %d, since each key is compared with them", len(all), hotparam.MaxExceptions)
				break
			}
		}
	}
	return all
}

// exception reads one item of except. A list of patterns makes it several.
func (r *ruleReader) exception(n *node, rule *hotparam.Rule, t terms) []hotparam.Exception {
	v := r.section(n, exceptSection)
	if v == nil {
		return nil
	}
	var x hotparam.Exception
	if !v.has("values") {
		r.report(n.at, valuesExample, "except.values is missing")
	}
	if s, ok := r.choice(v.get("action"), "except.action", "allow", "block"); ok {
		x.Action = map[string]hotparam.Action{"allow": hotparam.Allow, "block": hotparam.Block}[s]
	}
	for _, name := range []string{"hot", "limit"} {
		if other := v.get(name); other != nil && x.Action != hotparam.Adjust {
			r.report(other.at, "remove it, or remove the action", "except.%s: what is allowed or blocked is neither counted nor limited", name)
		}
	}
	if !v.has("action") && !v.has("hot") && !v.has("limit") {
		r.report(n.at, "add action: allow, action: block, hot: 1000/s or limit: 500/s", "the exception has neither action nor hot nor limit: it changes nothing")
	}
	x.Rate = r.exceptRate(v.get("hot"), rule.Hot, t)
	x.Limit = r.limit(v.get("limit"), t.unit)
	var all []hotparam.Exception
	for _, values := range r.values(v.get("values"), "except.values", rule, t) {
		x.Values = values
		all = append(all, x)
	}
	return all
}

// exceptRate reads a threshold in place of the rule's over the same window.
func (r *ruleReader) exceptRate(n *node, hot []hotparam.Threshold, t terms) hotparam.Rate {
	s, ok := r.scalar(n, "except.hot")
	if !ok {
		return hotparam.Rate{}
	}
	rate, reason := parseWindowed(s, t.unit)
	if reason != "" {
		r.report(n.at, rateHint(s, t.unit, "1000/s takes the place of the rule's rate over 1s"), "except.hot %s: %s", quote(s), reason)
		return hotparam.Rate{}
	}
	var rates []string
	for _, own := range hot {
		if own.Kind == hotparam.Absolute && own.Rate.Per == rate.Per {
			return rate
		}
		if own.Kind == hotparam.Absolute {
			rates = append(rates, own.Rate.String())
		}
	}
	if t.hotGood {
		hint := "an exception takes the place of a rate such as hot: 200/s, and the rule has none"
		if len(rates) > 0 {
			hint = "the rule has " + strings.Join(rates, " and ") + ": give a count over the same window"
		}
		r.report(n.at, hint, "except.hot %s: the rule has no rate over that window", quote(s))
	}
	return hotparam.Rate{}
}

// values reads names with patterns. A list of patterns stands for each of them,
// so this is what several exceptions have.
func (r *ruleReader) values(n *node, what string, rule *hotparam.Rule, t terms) [][]hotparam.QueryMatch {
	if n == nil {
		return nil
	}
	if n.kind != mapKind {
		r.report(n.at, valuesExample, "%s: want names with values, found %s", what, n.kind)
		return nil
	}
	if len(n.fields) == 0 {
		r.report(n.at, valuesExample, "%s: there are no values", what)
		return nil
	}
	if t.byGood {
		r.fits(n, what, rule)
	}
	all := [][]hotparam.QueryMatch{nil}
	for _, f := range n.fields {
		name, patterns := r.exceptName(f, what, rule, t), r.patterns(f, what)
		if len(all)*len(patterns) > hotparam.MaxExceptions {
			r.report(f.at, "use patterns: a star stands for any text", "%s: over %d combinations of values", what, hotparam.MaxExceptions)
			return nil
		}
		var next [][]hotparam.QueryMatch
		for _, values := range all {
			for _, pattern := range patterns {
				next = append(next, append(slices.Clip(values), hotparam.QueryMatch{Name: name, Value: pattern}))
			}
		}
		all = next
	}
	return all
}

// fits reports values that no key of the rule can have all.
func (r *ruleReader) fits(n *node, what string, rule *hotparam.Rule) {
	switch {
	case rule.By.Kind == hotparam.ByNone:
		r.report(n.at, fmt.Sprintf("add by: [%s]", n.fields[0].name), "%s: the rule has no by, so it makes no keys that could have values", what)
	case rule.By.Kind == hotparam.ByEach && len(n.fields) > 1:
		r.report(n.at, "write an exception for each of them", "%s: a key of by: each has one parameter, not %d", what, len(n.fields))
	case rule.By.Kind == hotparam.ByCombinations && len(n.fields) > hotparam.MaxCombination:
		r.report(n.at, "leave out those that matter least", "%s: a key combines at most %d parameters, not %d", what, hotparam.MaxCombination, len(n.fields))
	}
}

// exceptName reads the name of a parameter that the rule's keys can have.
func (r *ruleReader) exceptName(f field, what string, rule *hotparam.Rule, t terms) string {
	p, err := parseName(f.name)
	switch names := rule.By.Names; {
	case err != nil || !t.byGood:
	case len(names) == 0:
		if rule.By.Kind != hotparam.ByNone {
			err = checkName(p, f.name, nil, true, rule.Match.Route, r.rules.Secrets)
		}
	case !slices.Contains(names, p):
		var words []string
		for _, name := range names {
			words = append(words, nameText(name))
		}
		hint := "by has " + strings.Join(words, ", ")
		i := slices.IndexFunc(names, func(name hotparam.Param) bool { return name.Name == p.Name })
		if near := nearest(f.name, words); i >= 0 || near != "" {
			if i >= 0 {
				near = words[i]
			}
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		err = &nameError{"by does not have the parameter", hint}
	}
	if err != nil {
		r.report(f.at, err.hint, "%s %s: %s", what, quote(f.name), err.message)
	}
	return nameText(p)
}

// patterns reads one pattern or a list of them.
func (r *ruleReader) patterns(f field, what string) []string {
	items := []*node{f.value}
	if f.value.kind == listKind {
		items = f.value.items
	}
	if len(items) == 0 || f.value.kind == nullKind {
		r.report(f.at, valuesExample, "%s %s has no value", what, quote(f.name))
		return nil
	}
	var patterns []string
	for _, item := range items {
		if pattern, ok := r.scalar(item, what+" "+quote(f.name)); ok {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}
