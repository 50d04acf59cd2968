package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// Warnings returns the parts of the file that are valid but probably do not do what was
// intended, in the order of the file. A warning about an address that is not in the file,
// because a flag or a variable set it, has no position.
func (f *File) Warnings() Problems {
	return slices.Concat(Problems(f.warnings), f.openListeners()).arranged()
}

// warnOfRules adds the warnings about valid rules.
func (d *decoder) warnOfRules(ruleset *rules.Rules, top *fileNode) {
	d.warnOfRedacted(ruleset, top)
	for i := range ruleset.Rules {
		rule := &ruleset.Rules[i]
		place := func(field string) fieldPlace { return d.placeOf(top, fmt.Sprintf("rules[%d].%s", i, field)) }
		if message, hint := doubtfulRoute(rule.Match.Route); message != "" {
			d.warn(place("match.route").node.pos, hint, "match.route %s: %s", quote(rule.Match.Route.String()), message)
		}
		d.warnOfBodies(rule, place)
		d.warnOfHighLimits(rule, place)
		d.warnOfFreeKeys(ruleset, i, place)
		if rule.HasCost() && rule.Limit == nil {
			d.warn(place("hot").node.pos, "add limit: {concurrency: auto}",
				"hot.cost: the rule has no limit, so no key is held, and nothing proves that it slows the others down: keys are listed as suspected")
		}
	}
}

// warnOfRedacted warns about names in secrets.redact that make no keys. Rules can count any
// name of the query and the path. A name of another source counts only if a rule has it in by.
func (d *decoder) warnOfRedacted(ruleset *rules.Rules, top *fileNode) {
	for i, p := range ruleset.Redact.Names {
		named := func(r rules.Rule) bool { return slices.Contains(r.By.Names, p) }
		if p.Source == rules.Query || p.Source == rules.Path || slices.ContainsFunc(ruleset.Rules, named) {
			continue
		}
		d.warn(d.placeOf(top, fmt.Sprintf("secrets.redact[%d]", i)).node.pos, "name it in by: of a rule, or remove it",
			"secrets.redact %s: no rule has the parameter in by, so no key has its value", quote(p.FormatName()))
	}
}

// warnOfBodies warns about a rule for requests with a body if it has bare names, which may be
// intended as fields of the body. A name with its source is unambiguous.
func (d *decoder) warnOfBodies(rule *rules.Rule, place func(string) fieldPlace) {
	method, _, _ := strings.Cut(rule.Match.Route.String(), " ")
	if rule.Match.Route.Path() == "" || method != "POST" && method != "PUT" && method != "PATCH" {
		return
	}
	var bare []string
	var pos position
	for i, p := range rule.By.Names {
		n := place(fmt.Sprintf("by[%d]", i)).node
		if p.Source != rules.Query || strings.Contains(n.text, ":") {
			continue
		}
		if bare = append(bare, p.Name); len(bare) == 1 {
			pos = n.pos
		}
	}
	if len(bare) > 0 {
		d.warn(pos,
			fmt.Sprintf("write form:%s for a field of a form or of the query, json:%[1]s for one of JSON, query:%[1]s if it is in the query alone", bare[0]),
			"by %s: a name without a source is a query parameter: a %s request that has it in the body makes no key, so the rule neither counts nor limits it",
			quote(strings.Join(bare, ", ")), method)
	}
}

// warnOfFreeKeys warns about a rule that limits every value that clients choose freely, if no
// rule for its route limits their addresses. One client can then use up the places of max_keys.
func (d *decoder) warnOfFreeKeys(ruleset *rules.Rules, index int, place func(string) fieldPlace) {
	rule := &ruleset.Rules[index]
	if rule.Limit == nil || len(rule.Hot) > 0 || !isFree(&rule.By) {
		return
	}
	for i := range ruleset.Rules {
		outer := &ruleset.Rules[i]
		if outer.Limit != nil && len(outer.Hot) == 0 && isOfAddress(&outer.By) && covers(outer.Match.Route.String(), rule.Match.Route.String()) {
			return
		}
	}
	d.warn(place("by").node.pos,
		fmt.Sprintf("add a rule before it such as {id: clients, match: {route: %q}, by: [addr:ip], limit: 100/1m}, so that a client cannot send any number of values", rule.Match.Route.String()),
		"by: clients choose these values, and no limit by address bounds their number; beyond max_keys, new values may be refused")
}

// isFree reports whether a client can make an unlimited number of keys.
func isFree(keys *rules.By) bool {
	chosen := func(p rules.Param) bool { return p.Source != rules.Addr && p.Source != rules.Ctx }
	return keys.Kind != rules.ByNone && (len(keys.Names) == 0 || slices.ContainsFunc(keys.Names, chosen))
}

// isOfAddress reports whether the keys are addresses of clients.
func isOfAddress(keys *rules.By) bool {
	return keys.Kind == rules.ByNames && !isFree(keys) && slices.ContainsFunc(keys.Names, func(p rules.Param) bool { return p.Source == rules.Addr })
}

// covers reports whether outer certainly matches every request that route matches.
func covers(outer, route string) bool {
	_, path, _ := strings.Cut(route, " ")
	return outer == "*" || outer == route || outer == path || outer == "/" && strings.Contains(route, "/")
}

// warnOfHighLimits warns about limits above the rate at which a key becomes hot.
func (d *decoder) warnOfHighLimits(rule *rules.Rule, place func(string) fieldPlace) {
	if len(rule.Hot) == 0 {
		return
	}
	for i := range rule.Hot {
		if t := &rule.Hot[i]; t.Kind == rules.FixedRate && isAbove(rule.Limit, t.Rate) {
			d.warnOfHighLimit(place("limit.rate"), rule, rule.Limit, t.Rate)
			break
		}
	}
	for i := range rule.Except {
		x := &rule.Except[i]
		field, limit := fmt.Sprintf("except[%d].limit.rate", i), x.Limit
		if limit == nil {
			field, limit = fmt.Sprintf("except[%d].hot", i), rule.Limit
		}
		if x.Action == rules.Adjust && !x.Rate.IsZero() && isAbove(limit, x.Rate) {
			d.warnOfHighLimit(place(field), rule, limit, x.Rate)
		}
	}
}

func (d *decoder) warnOfHighLimit(p fieldPlace, rule *rules.Rule, l *rules.Limit, hot rules.Rate) {
	scope := ""
	if rule.ScopeOf(l) == rules.ScopeInstance {
		scope = " on each instance"
	}
	for _, w := range d.warnings {
		if pos := (position{w.Line, w.Column}); pos == p.node.pos {
			return // one entry with a list of values became several exceptions, with one position
		}
	}
	d.warn(p.node.pos,
		"a limit of the threshold's rate or less takes effect as soon as a key is hot; without hot, the rule limits every key",
		"limit %s is above the threshold %s: a key between the two is listed as hot, and all its requests pass; they are refused only above %[1]s%[3]s",
		rateText(l.Rate, rule.Count), rateText(hot, rule.Count), scope)
}

// rateText returns a rate in the form for messages.
func rateText(r rules.Rate, unit rules.Unit) string {
	if unit == rules.Requests {
		return r.String()
	}
	count, per, _ := strings.Cut(r.String(), "/")
	return count + " " + unit.String() + "/" + per
}

// isAbove reports whether l's rate exceeds the rate at which a key becomes hot.
func isAbove(l *rules.Limit, hot rules.Rate) bool {
	return l != nil && l.Burst != rules.Unlimited && l.Rate.PerSecond() > hot.PerSecond()
}
