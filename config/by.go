package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hotparam/hotparam"
)

// by reads which parameters make the rule's keys.
func (r *ruleReader) by(v values, route hotparam.Route) hotparam.By {
	n := v.get("by")
	switch {
	case n == nil && v.has("hot"):
		return hotparam.By{Kind: hotparam.ByAll}
	case n == nil:
		return hotparam.By{}
	case n.kind == listKind:
		return hotparam.By{Kind: hotparam.ByNames, Names: r.byNames(n, v.has("hot"), route)}
	case n.kind == mapKind:
		return r.byCombinations(n, v.has("hot"), route)
	}
	s, ok := r.scalar(n, "by")
	if kind, found := byWords[s]; ok && found {
		if kind == hotparam.ByCombinations {
			r.needHot(n, v.has("hot"))
		}
		return hotparam.By{Kind: kind}
	}
	if ok {
		hint := byForms
		if near := nearest(s, slices.Sorted(maps.Keys(byWords))); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		r.report(n.at, hint, "by %s: want all, each, combinations or a list of names", quote(s))
	}
	return hotparam.By{}
}

var byWords = map[string]hotparam.ByKind{"all": hotparam.ByAll, "each": hotparam.ByEach, "combinations": hotparam.ByCombinations}

const byForms = "by: all, by: each, by: combinations, or names in a list as in by: [q, path:id]"

var bySection = section{
	name: "by", prefix: "by.",
	fields:  []string{"combinations"},
	example: byForms,
}

// byCombinations reads which parameters are combined.
func (r *ruleReader) byCombinations(n *node, hot bool, route hotparam.Route) hotparam.By {
	v := r.section(n, bySection)
	if !v.has("combinations") && len(n.fields) == 0 {
		r.report(n.at, byForms, "by is empty")
	}
	list := v.get("combinations")
	if list == nil {
		return hotparam.By{}
	}
	if list.kind != listKind {
		r.report(list.at, "for example by: {combinations: [q, page]}; by: combinations combines all", "by.combinations: want a list of names, found %s", list.kind)
		return hotparam.By{}
	}
	r.needHot(n, hot)
	if len(list.items) > hotparam.MaxCombined {
		r.report(list.items[hotparam.MaxCombined].at, "name those that matter, or watch the others by a rule of their own", "by: more than %d names to combine", hotparam.MaxCombined)
	}
	return hotparam.By{Kind: hotparam.ByCombinations, Names: r.byNames(list, hot, route)}
}

func (r *ruleReader) needHot(n *node, hot bool) {
	if !hot {
		r.report(n.at, "add hot, or write by: each, which limits as tightly: a combination is never more frequent than its parts", "by: combinations are for rules with hot")
	}
}

func (r *ruleReader) byNames(n *node, hot bool, route hotparam.Route) []hotparam.Param {
	if len(n.items) == 0 {
		r.report(n.at, "name at least one parameter, or write by: all", "by: the list is empty")
	}
	var names []hotparam.Param
	for _, item := range n.items {
		s, ok := r.scalar(item, "by")
		if !ok {
			continue
		}
		p, err := parseName(s)
		if err == nil {
			err = checkName(p, s, names, hot, route, r.rules.Secrets)
		}
		if err != nil {
			r.report(item.at, err.hint, "by %s: %s", quote(s), err.message)
			continue
		}
		names = append(names, p)
	}
	return names
}

// nameError tells what is wrong with a parameter's name.
type nameError struct{ message, hint string }

// parseName reads "name" or "source:name".
func parseName(s string) (hotparam.Param, *nameError) {
	word, name, found := strings.Cut(s, ":")
	if !found {
		word, name = "query", s
	}
	source, known := hotparam.ParseSource(word)
	switch {
	case !known || word == "":
		return hotparam.Param{}, &nameError{
			fmt.Sprintf("unknown source %s", quote(word)),
			fmt.Sprintf("sources are query and path; a query parameter of that very name is %s", quote("query:"+s)),
		}
	case source != hotparam.Query && source != hotparam.Path:
		return hotparam.Param{}, &nameError{fmt.Sprintf("source %q is not built yet", word), "what works today: query and path"}
	case name == "":
		return hotparam.Param{}, &nameError{"the name is empty", "for example q, query:q or path:id"}
	}
	return hotparam.Param{Source: source, Name: name}, nil
}

// nameText is a name as [parseName] reads it.
func nameText(p hotparam.Param) string {
	if p.Source != hotparam.Query {
		return p.Source.String() + ":" + p.Name
	}
	if strings.Contains(p.Name, ":") {
		return "query:" + p.Name
	}
	return p.Name
}

// checkName sees that a name, written s, can make keys next to the names before
// it.
func checkName(p hotparam.Param, s string, before []hotparam.Param, hot bool, route hotparam.Route, secrets hotparam.Secrets) *nameError {
	wildcard := slices.Contains(route.Names(), p.Name)
	switch {
	case slices.Contains(before, p):
		return &nameError{"the parameter is named twice", "keep one of them"}
	case hot && secrets.Hides(p.Name):
		return &nameError{
			"the parameter looks secret and never leaves the process, so it can make no key",
			"if it holds no secret, add its name to secrets.except in the rules file",
		}
	case p.Source == hotparam.Path && !wildcard && !open(route):
		return &nameError{fmt.Sprintf("the route has no wildcard {%s}", p.Name), fmt.Sprintf("write the route with /{%s}/ in its place", p.Name)}
	case p.Source == hotparam.Query && wildcard && s == p.Name:
		return &nameError{
			fmt.Sprintf("the route has a wildcard {%s}, but a bare name is one of the query", p.Name),
			fmt.Sprintf("write path:%s for the wildcard, query:%s for the query", p.Name, p.Name),
		}
	}
	return nil
}

// open tells whether requests of the route can have wildcards that it does not
// name, because the program's router knows narrower patterns. A route that is
// bad is reported elsewhere.
func open(route hotparam.Route) bool {
	return route.IsZero() || route.IsAny() || strings.HasSuffix(route.Path(), "/")
}
