package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

const ruleExample = `for example - {id: search, match: {route: "GET /search"}, limit: {rate: 50/s}}`

// ruleSettings returns the fields of a rule in an order in which each can be read: the route
// before the names of its wildcards, count before numbers in that unit.
func ruleSettings(r *rules.Rule) settings {
	byForm := anyOf(schemaChoice(slices.Sorted(maps.Keys(byWords))...), schemaSome(schemaWord), bySection.fields.form("combinations"))
	return settings{
		{"id", plain(&r.ID, schemaForm(`^[a-z0-9_-]{1,64}$`)), "", "Name of the rule in lists, metrics and keys"},
		{"match", within(&r.Match, matchSettings(&r.Match), `for example match: {route: "GET /search", query: {filter: "*"}}`).shownAs(matchSettings(&r.Match).form("route")), "", "Which requests the rule is for"},
		{"action", isWord(&r.Ignore, "ignore", "ignore"), "", "ignore exempts the requests from all rules"},
		{"by", as(&r.By, byForm, func(d *decoder, n *fileNode, what string) rules.By {
			return d.selection(n, what, r.Match.Route)
		}), "", "The parameters that make keys: names such as q, path:id, header:x-tenant, addr:ip, form:user, json:item.sku, ctx:user"},
		{"unread", enum(&r.Unread, rules.UnreadLimit, wordsUpTo(rules.UnreadReject)...), "", "Decision for requests with an unreadable body"},
		{"count", enum(&r.Count, anyUnit, wordsUpTo(rules.Units)...), "", "What a request adds to its keys' counts. Default: requests"},
		{"hot", as(&r.Hot, oneOrMore(ref("threshold")), func(d *decoder, n *fileNode, _ string) []rules.Threshold {
			return d.hot(n, r.Count)
		}), "", "When a key is hot: 200/s, 20%, 8x, or fields; a list makes it hot by any of them"},
		{"limit", limitOf(&r.Limit, r), "", "What a hot key is held to, or every request if there is no hot: 50/s, or fields"},
		{"backend", plain(&r.Backend, schemaForm(`^[a-z0-9_-]{1,64}$`)), "", "What serves the requests, for hot: {cost: auto}: rules with the same backend are judged together. Default: id"},
		{"on_hot", as(&r.OnHot, onHotSettings(new(onHotFields)).form(), (*decoder).onHot), "", "How requests of a hot key are answered before its limit: identical ones once, and from memory"},
		{"except", as(&r.Except, schemaList(exceptSettings(new(rules.Exception), r).form("values")), func(d *decoder, n *fileNode, _ string) []rules.Exception {
			return d.exceptions(n, r)
		}), "", "Other terms for some values; the first that matches counts"},
		{"allow", exempt(r, rules.Allow), "", "Values that are neither counted nor limited"},
		{"block", exempt(r, rules.Block), "", "Values that are always refused"},
		{"prefix", plain(&r.Prefix, schemaText), "", "StatsD prefix of the rule's counts. Default: namespace.id"},
		{"key", isWord(&r.ParamsOnly, "params", "params", "full"), "", "params leaves the route out of keys"},
	}
}

// ignoreFields is the number of fields that an ignore rule has: id, match and action.
const ignoreFields = 3

// rules reads the rules.
func (d *decoder) rules(n *fileNode, what string) (all []rules.Rule) {
	items := d.list(n, what)
	if n.kind == listKind && len(items) == 0 {
		d.report(n.pos, ruleExample, "rules is empty")
	}
	for _, item := range items {
		d.ruleNodes = append(d.ruleNodes, ruleNodes{rule: item})
		all = append(all, d.rule(item))
	}
	return all
}

// rule reads one rule. It stays empty if the node is not a rule.
func (d *decoder) rule(n *fileNode) (rule rules.Rule) {
	fields := ruleSettings(&rule)
	v := d.fields(n, section{name: "a rule", fields: fields, example: ruleExample})
	if v == nil {
		return rule
	}
	d.read(v, "", fields[:ignoreFields])
	if rule.Ignore {
		for _, s := range fields[ignoreFields:] {
			if n := v.get(s.name); n != nil {
				d.reject(n, "remove it, or remove action: ignore", "%s: an ignore rule only exempts requests from the others", s.name)
			}
		}
		return rule
	}
	if v.has("hot") {
		rule.By.Kind = rules.ByAll // unless the file has by
	}
	if findsCost(v.get("hot")) {
		rule.Count = rules.Millis // unless the file has count
	}
	d.read(v, "", fields[ignoreFields:])
	if n := v.get("key"); n != nil && !n.bad && !v.has("hot") && !v.has("by") {
		d.reject(n, "add by, or remove key", "key: the rule has neither hot nor by, so it makes no keys")
	}
	if n := v.get("prefix"); n != nil && !n.bad && !v.has("hot") {
		d.reject(n, "remove it: only the counts of rules with hot are sent", "prefix: the rule has no hot")
	}
	return rule
}

func matchSettings(m *rules.Match) settings {
	return settings{
		{"route", as(&m.Route, schemaWord, (*decoder).route), "", `"*", a pattern such as "GET /u/{id}" or "/static/", or a resource`},
		{"query", as(&m.Query, formOf(schema{"type": "object", "additionalProperties": schemaText()}), func(d *decoder, n *fileNode, _ string) []rules.QueryMatch {
			return d.query(n, m.Route)
		}), "", "Parameters that the request must have; a star matches any text"},
	}
}

func (d *decoder) route(n *fileNode, what string) rules.Route {
	s, ok := d.scalar(n, what)
	route, err := rules.ParseRoute(s)
	if ok && err != nil {
		hint := `for example "GET /search", "/u/{id}", "/static/" or "*"`
		if ours, foreign := ownPattern(s); foreign != "" {
			hint = didYouMean(ours)
		}
		d.reject(n, hint, "match.route %s: %v", quote(s), errors.Unwrap(err))
	}
	return route
}

// query reads the parameters that a request must have, in their order. A bare name means the
// query, even if the route has a wildcard of that name. A parameter that cannot be read is
// skipped, and its node is bad.
func (d *decoder) query(n *fileNode, route rules.Route) []rules.QueryMatch {
	const example = `for example query: {filter: "*", lang: en}; a star matches any text`
	if n.kind != mapKind {
		d.reject(n, example, "match.query: want names with values, found %s", n.kind)
		return nil
	}
	var query []rules.QueryMatch
	for _, f := range n.fields {
		switch {
		case f.name == "":
			f.value.bad = true
			d.report(f.pos, example, "match.query: a name is empty")
			continue
		case f.value.kind == nullKind:
			f.value.bad = true
			d.report(f.pos, example, "match.query %s has no value", quote(f.name))
			continue
		}
		p, err := parseName(f.name, route)
		if err != nil && err.ofRoute && !strings.Contains(f.name, ":") {
			p, err = rules.Param{Name: f.name}, nil // a wildcard of this name does not matter to a bare name
		}
		if err != nil {
			f.value.bad = true
			d.report(f.pos, err.hint, "match.query %s: %s", quote(f.name), err.message)
			continue
		}
		if pattern, ok := d.scalar(f.value, "match.query "+quote(f.name)); ok {
			query = append(query, rules.QueryMatch{Name: p.FormatName(), Value: pattern})
		}
	}
	return query
}
