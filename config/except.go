package config

import (
	"slices"

	"github.com/hotparam/hotparam/rules"
)

var exceptSection = section{
	name: "an exception", prefix: "except.",
	fields: settings{
		{"values", shown(schemaValues()), "", "Names with a pattern, or several; a star matches any text"},
		{"action", shown(schemaChoice("allow", "block")), "", "allow neither counts nor limits, block refuses"},
		{"hot", shown(schemaRate()), "", "A threshold in place of the rule's, over the same window"},
		{"limit", shown(ref("limit")), "", ""},
	},
	example: `for example except: [{values: {q: "phone*"}, action: allow}]`,
}

const valuesExample = `for example values: {q: "phone*"}, or values: {q: [tv, radio]}; a star matches any text`

// exceptions reads except, then allow, then block. The first match counts.
func (r *ruleReader) exceptions(v values, rule *rules.Rule) []rules.Exception {
	var all []rules.Exception
	if n := v.get("except"); n != nil && n.kind != listKind {
		r.reject(n, exceptSection.example, "except: want a list, found %s", n.kind)
	} else if n != nil {
		for _, item := range n.items {
			all = append(all, r.exception(item, rule)...)
		}
	}
	for _, short := range []struct {
		name   string
		action rules.Action
	}{{"allow", rules.Allow}, {"block", rules.Block}} {
		n := v.get(short.name)
		if n == nil {
			continue
		}
		items := []*node{n}
		if n.kind == listKind {
			items = n.items
		}
		for _, item := range items {
			all = append(all, r.expand(item, item, short.name, rule, rules.Exception{Action: short.action})...)
		}
	}
	return all
}

// exception reads one item of except. A list of patterns makes several exceptions.
func (r *ruleReader) exception(n *node, rule *rules.Rule) []rules.Exception {
	v := r.section(n, exceptSection)
	if v == nil {
		return nil
	}
	var x rules.Exception
	if !v.has("values") {
		r.report(n.pos, valuesExample, "except.values is missing")
	}
	if s, ok := r.choice(v.get("action"), "except.action", "allow", "block"); ok {
		x.Action = map[string]rules.Action{"allow": rules.Allow, "block": rules.Block}[s]
	}
	x.Rate = r.exceptRate(v.get("hot"), rule.Count)
	x.Limit = r.limit(v.get("limit"), rule.Count)
	return r.expand(n, v.get("values"), "except.values", rule, x)
}

// exceptRate reads a threshold that replaces the rule's over the same window.
func (r *ruleReader) exceptRate(n *node, unit rules.Unit) rules.Rate {
	s, ok := r.scalar(n, "except.hot")
	if !ok {
		return rules.Rate{}
	}
	rate, reason := parseRate(s, unit, quantities[unit].most)
	if reason != "" {
		r.reject(n, rateHint(s, unit, "1000/s takes the place of the rule's rate over 1s"), "except.hot %s: %s", quote(s), reason)
		return rules.Rate{}
	}
	return rate
}

// expand makes exceptions like x from the values in n, one for each choice among lists of
// patterns. If no values can be read, it makes one exception, so that its other fields are
// still checked. item is the node of the whole exception.
func (r *ruleReader) expand(item, n *node, what string, rule *rules.Rule, x rules.Exception) []rules.Exception {
	nodes := exceptionNodes{item: item, what: what}
	var lists [][]rules.QueryMatch
	if lists, nodes.names = r.values(n, what, rule); lists == nil {
		lists = [][]rules.QueryMatch{nil}
	}
	all := make([]rules.Exception, len(lists))
	last := &r.ruleNodes[len(r.ruleNodes)-1]
	for i, values := range lists {
		all[i], all[i].Values = x, values
		last.exceptions = append(last.exceptions, nodes)
	}
	return all
}

// values reads names with patterns, and the places of the names. A list of patterns represents
// several exceptions, each with one of them, so values returns the values of several
// exceptions. It returns nil for values that cannot be read.
func (r *ruleReader) values(n *node, what string, rule *rules.Rule) (all [][]rules.QueryMatch, names []*node) {
	if n == nil {
		return nil, nil
	}
	if n.kind != mapKind {
		r.reject(n, valuesExample, "%s: want names with values, found %s", what, n.kind)
		return nil, nil
	}
	if len(n.fields) == 0 {
		r.reject(n, valuesExample, "%s: there are no values", what)
		return nil, nil
	}
	all = [][]rules.QueryMatch{nil}
	for _, f := range n.fields {
		nameNode := &node{kind: scalarKind, pos: f.pos, text: f.name}
		names = append(names, nameNode)
		p, err := parseName(f.name, rule.Match.Route)
		if err != nil && err.ofRoute && (len(rule.By.Names) > 0 || rule.By.Kind == rules.ByNone) {
			p, err = parseName(f.name, rules.Route{}) // by determines which names exist
		}
		if err != nil {
			r.reject(nameNode, err.hint, "%s %s: %s", what, quote(f.name), err.message)
			f.value.bad = true
		}
		patterns := r.patterns(f, what)
		if len(all)*max(1, len(patterns)) > rules.MaxExceptions {
			r.report(f.pos, "use patterns: a star matches any text", "%s: over %d combinations of values", what, rules.MaxExceptions)
			f.value.bad = true
			return nil, nil
		}
		var next [][]rules.QueryMatch
		for _, values := range all {
			for _, pattern := range patterns {
				next = append(next, append(slices.Clip(values), rules.QueryMatch{Name: nameText(p), Value: pattern}))
			}
			if len(patterns) == 0 { // the error was reported
				next = append(next, append(slices.Clip(values), rules.QueryMatch{Name: nameText(p)}))
			}
		}
		all = next
	}
	return all, names
}

// patterns reads one pattern or a list of them.
func (r *ruleReader) patterns(f field, what string) []string {
	items := []*node{f.value}
	if f.value.kind == listKind {
		items = f.value.items
	}
	if len(items) == 0 || f.value.kind == nullKind {
		f.value.bad = true
		r.report(f.pos, valuesExample, "%s %s has no value", what, quote(f.name))
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
