package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// keyParams reads the parameters that make the rule's keys.
func (r *ruleReader) keyParams(v values, route rules.Route) rules.By {
	n := v.get("by")
	switch {
	case n == nil && v.has("hot"):
		return rules.By{Kind: rules.ByAll}
	case n == nil:
		return rules.By{}
	case n.kind == listKind:
		return rules.By{Kind: rules.ByNames, Names: r.byNames(n, route)}
	case n.kind == mapKind:
		return r.byCombinations(n, route)
	}
	s, ok := r.scalar(n, "by")
	if kind, found := byWords[s]; ok && found {
		return rules.By{Kind: kind}
	}
	if ok {
		hint := byForms
		if near := base.NearestWord(s, slices.Sorted(maps.Keys(byWords))); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		r.reject(n, hint, "by %s: want all, each, combinations or a list of names", quote(s))
	}
	return rules.By{}
}

var byWords = map[string]rules.ByKind{"all": rules.ByAll, "each": rules.ByEach, "combinations": rules.ByCombinations}

const byForms = "by: all, by: each, by: combinations, or names in a list as in by: [q, path:id]"

var bySection = section{
	name: "by", prefix: "by.",
	fields:  settings{{"combinations", shown(schemaSome(schemaWord())), "", ""}},
	example: byForms,
}

// byCombinations reads the parameters that are combined.
func (r *ruleReader) byCombinations(n *node, route rules.Route) rules.By {
	v := r.section(n, bySection)
	if !v.has("combinations") && len(n.fields) == 0 {
		r.reject(n, byForms, "by is empty")
	}
	list := v.get("combinations")
	if list == nil {
		return rules.By{}
	}
	if list.kind != listKind {
		r.reject(list, "for example by: {combinations: [q, page]}; by: combinations combines all", "by.combinations: want a list of names, found %s", list.kind)
		return rules.By{}
	}
	return rules.By{Kind: rules.ByCombinations, Names: r.byNames(list, route)}
}

// byNames reads names. A name that cannot be read becomes empty, so that the indices match the
// items of the list.
func (r *ruleReader) byNames(n *node, route rules.Route) []rules.Param {
	if len(n.items) == 0 {
		r.reject(n, "name at least one parameter, or write by: all", "by: the list is empty")
	}
	var names []rules.Param
	for _, item := range n.items {
		var p rules.Param
		if s, ok := r.scalar(item, "by"); ok {
			var err *nameError
			if p, err = parseName(s, route); err != nil {
				r.reject(item, err.hint, "by %s: %s", quote(s), err.message)
				p = rules.Param{}
			}
		}
		names = append(names, p)
	}
	return names
}

// nameError is an error in a parameter's name.
type nameError struct {
	message, hint string
	ofRoute       bool // whether the error depends on the route's wildcards
}

// parseName reads "name" or "source:name" in a rule of the route. In a file, a path: name must
// be a wildcard of the route, unless the route is open. A bare name means the query, and must
// not be a wildcard of the route too. Code may know more of its paths.
func parseName(s string, route rules.Route) (rules.Param, *nameError) {
	p, message, hint := rules.ParseName(s)
	name := p.Name
	switch {
	case message != "":
		return rules.Param{}, &nameError{message, hint, false}
	case p.Source == rules.Path && !slices.Contains(route.Names(), name) && !open(route):
		return rules.Param{}, &nameError{fmt.Sprintf("the route has no wildcard {%s}", name), fmt.Sprintf("write the route with /{%s}/ instead", name), true}
	case !strings.Contains(s, ":") && slices.Contains(route.Names(), name):
		return rules.Param{}, &nameError{
			fmt.Sprintf("the route has a wildcard {%s}, but a bare name is one of the query", name),
			fmt.Sprintf("write path:%s for the wildcard, query:%s for the query", name, name), true,
		}
	}
	return p, nil
}

// nameText returns a name in the form that [parseName] reads.
func nameText(p rules.Param) string {
	if p.Source != rules.Query {
		return p.Source.String() + ":" + p.Name
	}
	if strings.Contains(p.Name, ":") {
		return "query:" + p.Name
	}
	return p.Name
}

// open reports whether requests of the route can have wildcards that it does not name, because
// the program's router knows narrower patterns. It returns true for a bad route, which is
// reported elsewhere.
func open(route rules.Route) bool {
	return route.IsZero() || route.IsAny() || strings.HasSuffix(route.Path(), "/")
}
