package config

import (
	"errors"
	"strings"

	"github.com/hotparam/hotparam"
)

var ruleSection = section{
	name:    "a rule",
	fields:  []string{"id", "match", "action", "by", "count", "hot", "limit", "except", "allow", "block", "prefix", "key"},
	example: `for example - {id: search, match: {route: "GET /search"}, limit: {rate: 50/s}}`,
}

// ruleReader reads the rules of one file and remembers what must be unique.
type ruleReader struct {
	*decoder
	rules    *hotparam.Rules
	ids      map[string]int // line of the first use
	prefixes map[string]int // the same for the prefixes of rules with hot
}

// rules appends the rules of the list to rules.
func (d *decoder) rules(n *node, rules *hotparam.Rules) {
	items := d.list(n, "rules")
	if n != nil && n.kind == listKind && len(items) == 0 {
		d.report(n.at, ruleSection.example, "rules is empty")
	}
	r := ruleReader{d, rules, make(map[string]int), make(map[string]int)}
	for _, item := range items {
		if v := d.section(item, ruleSection); v != nil {
			rules.Rules = append(rules.Rules, r.rule(item.at, v))
		}
	}
}

// rule reads one rule. at is where it begins.
func (r *ruleReader) rule(at position, v values) hotparam.Rule {
	rule := hotparam.Rule{ID: r.id(at, v)}
	if !v.has("match") {
		r.report(at, `add match: {route: "*"} for every request, or a narrower route`, "the rule has no match")
	}
	rule.Match = r.match(v.get("match"))
	if s, ok := r.choice(v.get("action"), "action", "ignore"); ok && s == "ignore" {
		rule.Ignore = true
		r.nothingElse(v)
		return rule
	}
	rule.Count = r.count(v.get("count"))
	t := terms{unit: rule.Count}
	t.hotGood = r.good(func() { rule.Hot = r.hot(v.get("hot"), t.unit) })
	rule.Limit = r.limit(v.get("limit"), t.unit)
	t.byGood = r.good(func() { rule.By = r.by(v, rule.Match.Route) })
	exceptGood := r.good(func() { rule.Except = r.exceptions(v, &rule, t) })
	r.effect(at, v, &rule, exceptGood)
	if s, ok := r.choice(v.get("key"), "key", "params", "full"); ok {
		rule.ParamsOnly = s == "params"
		if !v.has("hot") && !v.has("by") {
			r.report(v.get("key").at, "add by, or remove key", "key: the rule has neither hot nor by, so it makes no keys")
		}
	}
	rule.Prefix = r.prefix(v, rule.ID)
	return rule
}

// good tells whether reading has found no problems.
func (r *ruleReader) good(read func()) bool {
	before := len(r.problems)
	read()
	return len(r.problems) == before
}

// count reads what a request counts.
func (r *ruleReader) count(n *node) hotparam.Unit {
	var words []string
	for u := hotparam.Requests; u <= hotparam.Units; u++ {
		words = append(words, u.String())
	}
	if n == nil {
		return hotparam.Requests
	}
	s, _ := r.choice(n, "count", words...)
	if unit, known := hotparam.ParseUnit(s); known {
		return unit
	}
	return anyUnit
}

// effect reports a rule that does nothing, or counts for nothing.
func (r *ruleReader) effect(at position, v values, rule *hotparam.Rule, exceptGood bool) {
	const hint = "add limit: {rate: 50/s}, hot: {rate: 200/s} or action: ignore"
	limits, blocks := v.has("limit"), false
	for _, x := range rule.Except {
		limits, blocks = limits || x.Limit != nil, blocks || x.Action == hotparam.Block
	}
	switch {
	case v.has("hot") || limits || v.has("action") || !exceptGood:
	case v.get("count") != nil:
		r.report(v.get("count").at, "add hot or limit, or remove count", "count: the rule has neither hot nor limit, so it counts nothing")
	case len(rule.Except) > 0 && !blocks:
		r.report(at, hint, "the rule has neither hot nor limit, and none of its exceptions blocks: it does nothing")
	case !blocks:
		r.report(at, hint, "the rule has neither hot nor limit: it does nothing")
	}
}

// nothingElse reports what an ignore rule says in vain.
func (r *ruleReader) nothingElse(v values) {
	for _, name := range ruleSection.fields[3:] { // all behind id, match and action
		if n := v.get(name); n != nil {
			r.report(n.at, "remove it, or remove action: ignore", "%s: an ignore rule only exempts requests from the others", name)
		}
	}
}

func (r *ruleReader) id(at position, v values) string {
	n := v.get("id")
	id, ok := r.scalar(n, "id")
	switch {
	case !v.has("id"):
		r.report(at, "add id: with a name of a-z 0-9 _ -", "the rule has no id")
	case !ok:
	case !hotparam.ValidRuleID(id):
		r.report(n.at, "for example search-terms", "id %s: want 1 to 64 of a-z 0-9 _ -", quote(id))
	case r.ids[id] > 0:
		r.report(n.at, "give each rule an id of its own", "id %q is used twice, first in line %d", id, r.ids[id])
	default:
		r.ids[id] = n.at.line
		return id
	}
	return ""
}

var matchSection = section{
	name: "match", prefix: "match.",
	fields:  []string{"route", "query"},
	example: `for example match: {route: "GET /search", query: {filter: "*"}}`,
}

func (r *ruleReader) match(n *node) hotparam.Match {
	var m hotparam.Match
	v := r.section(n, matchSection)
	if v == nil {
		return m
	}
	if !v.has("route") {
		r.report(n.at, `add route: "*" for every request, or "GET /search"`, "match.route is missing")
	}
	if s, ok := r.scalar(v.get("route"), "match.route"); ok {
		var err error
		if m.Route, err = hotparam.ParseRoute(s); err != nil {
			r.report(v.get("route").at, `for example "GET /search", "/u/{id}", "/static/" or "*"`, "match.route %s: %v", quote(s), errors.Unwrap(err))
		}
	}
	m.Query = r.query(v.get("query"))
	return m
}

// query reads the parameters that a request must have, in their order.
func (r *ruleReader) query(n *node) []hotparam.QueryMatch {
	if n == nil {
		return nil
	}
	const example = `for example query: {filter: "*", lang: en}; a star stands for any text`
	if n.kind != mapKind {
		r.report(n.at, example, "match.query: want names with values, found %s", n.kind)
		return nil
	}
	var query []hotparam.QueryMatch
	for _, f := range n.fields {
		switch {
		case f.name == "":
			r.report(f.at, example, "match.query: a name is empty")
			continue
		case f.value.kind == nullKind:
			r.report(f.at, example, "match.query %s has no value", quote(f.name))
			continue
		}
		if pattern, ok := r.scalar(f.value, "match.query "+quote(f.name)); ok {
			query = append(query, hotparam.QueryMatch{Name: f.name, Value: pattern})
		}
	}
	return query
}

// marker ends a prefix in a StatsD line, so it cannot be within one.
const marker = ".hot_param."

const maxPrefix = 64 + 1 + 64 // bytes, as the longest default, to leave room for a key in a packet

// prefix reads the prefix of the rule's counts, and sees that it leads back to
// this rule alone.
func (r *ruleReader) prefix(v values, id string) string {
	n := v.get("prefix")
	own, ok := r.scalar(n, "prefix")
	switch {
	case ok && !v.has("hot"):
		r.report(n.at, "remove it: only the counts of rules with hot are sent", "prefix: the rule has no hot")
		return ""
	case ok && !validPrefix(own):
		r.report(n.at, "for example shop.search", "prefix %s: want parts of A-Z a-z 0-9 _ - with dots between, %d bytes at most", quote(own), maxPrefix)
		return ""
	case !v.has("hot") || !ok && (v.has("prefix") || id == ""):
		return "" // there are no counts, or it is reported
	}
	effective := own
	if !ok {
		n, effective = v.get("id"), r.rules.Namespace+"."+id
	}
	switch line := r.prefixes[effective]; {
	case strings.Contains(effective+".", marker):
		r.report(n.at, "choose another", `prefix %q: "hot_param" stands between a prefix and its key`, effective)
	case line > 0:
		r.report(n.at, "give one of the two another prefix", "prefix %q is that of the rule in line %d too: their counts could not be told apart", effective, line)
	default:
		r.prefixes[effective] = n.at.line
	}
	return own
}

func validPrefix(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if !hotparam.ValidNamespace(part) {
			return false
		}
	}
	return len(s) <= maxPrefix
}
