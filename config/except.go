package config

import (
	"slices"

	"github.com/hotparam/hotparam/rules"
)

const (
	exceptExample = `for example except: [{values: {q: "phone*"}, action: allow}]`
	valuesExample = `for example values: {q: "phone*"}, or values: {q: [tv, radio]}; a star matches any text`
)

func exceptSettings(x *rules.Exception, rule *rules.Rule) settings {
	return settings{
		{"values", shown(schemaValues), "", "Names of parameters, each with a value, a pattern or a list of these; a star matches any text"},
		{"action", as(&x.Action, schemaChoice("allow", "block"), func(d *decoder, n *fileNode, what string) rules.Action {
			s, _ := d.choice(n, what, "allow", "block")
			return map[string]rules.Action{"allow": rules.Allow, "block": rules.Block}[s]
		}), "", "allow neither counts nor limits, block refuses"},
		{"hot", as(&x.Rate, schemaRate, func(d *decoder, n *fileNode, what string) rules.Rate {
			return d.exceptRate(n, what, rule.Count)
		}), "", "A threshold in place of the rule's, over the same window"},
		{"limit", limitOf(&x.Limit, rule), "", ""},
	}
}

// exceptions reads except. The first match counts.
func (d *decoder) exceptions(n *fileNode, rule *rules.Rule) (all []rules.Exception) {
	if n.kind != listKind {
		d.reject(n, exceptExample, "except: want a list, found %s", n.kind)
	}
	for _, item := range n.items {
		all = append(all, d.exception(item, rule)...)
	}
	return all
}

// exempt returns the value for allow or block, whose exceptions come after those before.
func exempt(rule *rules.Rule, action rules.Action) fieldBinding {
	return as(&rule.Except, anyOf(schemaValues, schemaList(schemaValues)), func(d *decoder, n *fileNode, what string) []rules.Exception {
		all := rule.Except
		for _, item := range oneOrItems(n) {
			all = append(all, d.expand(item, item, what, rule, rules.Exception{Action: action})...)
		}
		return all
	})
}

// exception reads one item of except. A list of patterns makes several exceptions.
func (d *decoder) exception(n *fileNode, rule *rules.Rule) []rules.Exception {
	var x rules.Exception
	v := d.section(n, section{name: "an exception", prefix: "except.", fields: exceptSettings(&x, rule), example: exceptExample})
	if v == nil {
		return nil
	}
	if !v.has("values") {
		d.report(n.pos, valuesExample, "except.values is missing")
	}
	return d.expand(n, v.get("values"), "except.values", rule, x)
}

// exceptRate reads a threshold that replaces the rule's over the same window.
func (d *decoder) exceptRate(n *fileNode, what string, unit rules.Unit) rules.Rate {
	s, ok := d.scalar(n, what)
	if !ok {
		return rules.Rate{}
	}
	rate, reason := parseRate(s, unit, quantities[unit].maxRate)
	if reason != "" {
		d.reject(n, rateHint(s, unit, "1000/s takes the place of the rule's rate over 1s"), "%s %s: %s", what, quote(s), reason)
		return rules.Rate{}
	}
	return rate
}

// expand makes exceptions like x from the values in n, one for each choice among lists of
// patterns. If no values can be read, it makes one exception, so that its other fields are
// still checked. item is the node of the whole exception.
func (d *decoder) expand(item, n *fileNode, what string, rule *rules.Rule, x rules.Exception) []rules.Exception {
	nodes := exceptionNodes{item: item, what: what}
	var lists [][]rules.QueryMatch
	if lists, nodes.names = d.values(n, what, rule); lists == nil {
		lists = [][]rules.QueryMatch{nil}
	}
	all := make([]rules.Exception, len(lists))
	last := &d.ruleNodes[len(d.ruleNodes)-1]
	for i, values := range lists {
		all[i], all[i].Values = x, values
		last.exceptions = append(last.exceptions, nodes)
	}
	return all
}

// values reads names with patterns, and the places of the names. A list of patterns represents
// several exceptions, each with one of them, so values returns the values of several
// exceptions. It returns nil for values that cannot be read.
func (d *decoder) values(n *fileNode, what string, rule *rules.Rule) (all [][]rules.QueryMatch, names []*fileNode) {
	if n == nil {
		return nil, nil
	}
	if n.kind != mapKind {
		d.reject(n, valuesExample, "%s: want names with values, found %s", what, n.kind)
		return nil, nil
	}
	if len(n.fields) == 0 {
		d.reject(n, valuesExample, "%s: there are no values", what)
		return nil, nil
	}
	all = [][]rules.QueryMatch{nil}
	for _, f := range n.fields {
		nameNode := &fileNode{kind: scalarKind, pos: f.pos, text: f.name}
		names = append(names, nameNode)
		p, err := parseName(f.name, rule.Match.Route)
		if err != nil && err.ofRoute && (len(rule.By.Names) > 0 || rule.By.Kind == rules.ByNone) {
			p, err = parseName(f.name, rules.Route{}) // by determines which names exist
		}
		if err != nil {
			d.reject(nameNode, err.hint, "%s %s: %s", what, quote(f.name), err.message)
			f.value.bad = true
		}
		patterns := d.patterns(f, what)
		if len(all)*max(1, len(patterns)) > rules.MaxExceptions {
			d.report(f.pos, "use patterns: a star matches any text", "%s: over %d combinations of values", what, rules.MaxExceptions)
			f.value.bad = true
			return nil, nil
		}
		var next [][]rules.QueryMatch
		for _, values := range all {
			for _, pattern := range patterns {
				next = append(next, append(slices.Clip(values), rules.QueryMatch{Name: p.FormatName(), Value: pattern}))
			}
			if len(patterns) == 0 { // the error was reported
				next = append(next, append(slices.Clip(values), rules.QueryMatch{Name: p.FormatName()}))
			}
		}
		all = next
	}
	return all, names
}

// patterns reads one pattern or a list of them.
func (d *decoder) patterns(f mapField, what string) []string {
	items := oneOrItems(f.value)
	if len(items) == 0 || f.value.kind == nullKind {
		f.value.bad = true
		d.report(f.pos, valuesExample, "%s %s has no value", what, quote(f.name))
		return nil
	}
	var patterns []string
	for _, item := range items {
		if pattern, ok := d.scalar(item, what+" "+quote(f.name)); ok {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}
