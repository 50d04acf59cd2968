package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

var ruleSection = section{
	name: "a rule",
	fields: settings{
		{"id", shown(schemaForm(`^[a-z0-9_-]{1,64}$`)), "", "Name of the rule in lists, metrics and keys"},
		{"match", shown(matchSection.fields.schema("route")), "", "Which requests the rule is for"},
		{"action", shown(schemaChoice("ignore")), "", "ignore exempts the requests from all rules"},
		{"by", shown(schema{"anyOf": []schema{schemaChoice(slices.Sorted(maps.Keys(byWords))...), schemaSome(schemaWord()), bySection.fields.schema("combinations")}}), "", "The parameters that make keys: names such as q, path:id, header:x-tenant, addr:ip, form:user, json:item.sku, ctx:user"},
		{"unread", shown(schemaChoice(unreadWords()...)), "", "Decision for requests with an unreadable body"},
		{"count", shown(schemaChoice(unitWords()...)), "", "What a request adds to its keys' counts. Default: requests"},
		{"hot", shown(oneOrMore(ref("threshold"))), "", "When a key is hot: 200/s, 20%, 8x, or fields; of several any"},
		{"limit", shown(ref("limit")), "", "What a hot key is held to, or every request if there is no hot: 50/s, or fields"},
		{"except", shown(schemaList(exceptSection.fields.schema("values"))), "", "Other terms for some values; the first that matches counts"},
		{"allow", shown(schema{"anyOf": []schema{schemaValues(), schemaList(schemaValues())}}), "", "Values that are neither counted nor limited"},
		{"block", shown(schema{"anyOf": []schema{schemaValues(), schemaList(schemaValues())}}), "", "Values that are always refused"},
		{"prefix", shown(schemaText()), "", "StatsD prefix of the rule's counts. Default: namespace.id"},
		{"key", shown(schemaChoice("params", "full")), "", "params leaves the route out of keys"},
	},
	example: `for example - {id: search, match: {route: "GET /search"}, limit: {rate: 50/s}}`,
}

// ruleReader reads the rules of one file.
type ruleReader struct {
	*decoder
	rules *rules.Rules
}

// rules appends the rules of the list to rules.
func (d *decoder) rules(n *node, ruleset *rules.Rules) {
	items := d.list(n, "rules")
	if n != nil && n.kind == listKind && len(items) == 0 {
		d.report(n.pos, ruleSection.example, "rules is empty")
	}
	r := ruleReader{d, ruleset}
	for _, item := range items {
		d.ruleNodes = append(d.ruleNodes, ruleNodes{rule: item})
		var rule rules.Rule // stays empty if the node is not a rule
		if v := d.section(item, ruleSection); v != nil {
			rule = r.rule(v)
		}
		ruleset.Rules = append(ruleset.Rules, rule)
	}
}

// rule reads one rule.
func (r *ruleReader) rule(v values) rules.Rule {
	var rule rules.Rule
	rule.ID, _ = r.scalar(v.get("id"), "id")
	rule.Match = r.match(v.get("match"))
	if s, ok := r.choice(v.get("action"), "action", "ignore"); ok && s == "ignore" {
		rule.Ignore = true
		r.nothingElse(v)
		return rule
	}
	rule.Count = r.count(v.get("count"))
	rule.Hot = r.hot(v.get("hot"), rule.Count)
	rule.Limit = r.limit(v.get("limit"), rule.Count)
	rule.By = r.keyParams(v, rule.Match.Route)
	rule.Unread = r.unread(v.get("unread"))
	rule.Except = r.exceptions(v, &rule)
	if s, ok := r.choice(v.get("key"), "key", "params", "full"); ok {
		rule.ParamsOnly = s == "params"
		if !v.has("hot") && !v.has("by") {
			r.reject(v.get("key"), "add by, or remove key", "key: the rule has neither hot nor by, so it makes no keys")
		}
	}
	if s, ok := r.scalar(v.get("prefix"), "prefix"); ok && !v.has("hot") {
		r.reject(v.get("prefix"), "remove it: only the counts of rules with hot are sent", "prefix: the rule has no hot")
	} else {
		rule.Prefix = s
	}
	return rule
}

// count reads the unit in which a rule counts requests.
func (r *ruleReader) count(n *node) rules.Unit {
	var words []string
	for u := rules.Requests; u <= rules.Units; u++ {
		words = append(words, u.String())
	}
	if n == nil {
		return rules.Requests
	}
	s, _ := r.choice(n, "count", words...)
	if unit, known := rules.ParseUnit(s); known {
		return unit
	}
	return anyUnit
}

// nothingElse reports fields that have no effect in an ignore rule.
func (r *ruleReader) nothingElse(v values) {
	for _, name := range ruleSection.fields.names()[3:] { // all after id, match and action
		if n := v.get(name); n != nil {
			r.reject(n, "remove it, or remove action: ignore", "%s: an ignore rule only exempts requests from the others", name)
		}
	}
}

var matchSection = section{
	name: "match", prefix: "match.",
	fields: settings{
		{"route", shown(schemaWord()), "", `"*", a pattern such as "GET /u/{id}" or "/static/", or a resource`},
		{"query", shown(schema{"type": "object", "additionalProperties": schemaText()}), "", "Parameters that the request must have; a star matches any text"},
	},
	example: `for example match: {route: "GET /search", query: {filter: "*"}}`,
}

func (r *ruleReader) match(n *node) rules.Match {
	var m rules.Match
	v := r.section(n, matchSection)
	if v == nil {
		return m
	}
	if s, ok := r.scalar(v.get("route"), "match.route"); ok {
		var err error
		if m.Route, err = rules.ParseRoute(s); err != nil {
			hint := `for example "GET /search", "/u/{id}", "/static/" or "*"`
			if ours, foreign := ownPattern(s); foreign != "" {
				hint = didYouMean(ours)
			}
			r.reject(v.get("route"), hint, "match.route %s: %v", quote(s), errors.Unwrap(err))
		}
	}
	m.Query = r.query(v.get("query"), m.Route)
	return m
}

// query reads the parameters that a request must have, in their order. A bare name means the
// query, even if the route has a wildcard of that name. A parameter that cannot be read is
// skipped, and its node is bad.
func (r *ruleReader) query(n *node, route rules.Route) []rules.QueryMatch {
	if n == nil {
		return nil
	}
	const example = `for example query: {filter: "*", lang: en}; a star matches any text`
	if n.kind != mapKind {
		r.reject(n, example, "match.query: want names with values, found %s", n.kind)
		return nil
	}
	var query []rules.QueryMatch
	for _, f := range n.fields {
		switch {
		case f.name == "":
			f.value.bad = true
			r.report(f.pos, example, "match.query: a name is empty")
			continue
		case f.value.kind == nullKind:
			f.value.bad = true
			r.report(f.pos, example, "match.query %s has no value", quote(f.name))
			continue
		}
		p, err := parseName(f.name, route)
		if err != nil && err.ofRoute && !strings.Contains(f.name, ":") {
			p, err = rules.Param{Name: f.name}, nil
		}
		if err != nil {
			f.value.bad = true
			r.report(f.pos, err.hint, "match.query %s: %s", quote(f.name), err.message)
			continue
		}
		if pattern, ok := r.scalar(f.value, "match.query "+quote(f.name)); ok {
			query = append(query, rules.QueryMatch{Name: nameText(p), Value: pattern})
		}
	}
	return query
}
