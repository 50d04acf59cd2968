package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/spelling"
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
		return hotparam.By{Kind: hotparam.ByNames, Names: r.byNames(n, route)}
	case n.kind == mapKind:
		return r.byCombinations(n, route)
	}
	s, ok := r.scalar(n, "by")
	if kind, found := byWords[s]; ok && found {
		return hotparam.By{Kind: kind}
	}
	if ok {
		hint := byForms
		if near := spelling.Nearest(s, slices.Sorted(maps.Keys(byWords))); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		r.reject(n, hint, "by %s: want all, each, combinations or a list of names", quote(s))
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
func (r *ruleReader) byCombinations(n *node, route hotparam.Route) hotparam.By {
	v := r.section(n, bySection)
	if !v.has("combinations") && len(n.fields) == 0 {
		r.reject(n, byForms, "by is empty")
	}
	list := v.get("combinations")
	if list == nil {
		return hotparam.By{}
	}
	if list.kind != listKind {
		r.reject(list, "for example by: {combinations: [q, page]}; by: combinations combines all", "by.combinations: want a list of names, found %s", list.kind)
		return hotparam.By{}
	}
	return hotparam.By{Kind: hotparam.ByCombinations, Names: r.byNames(list, route)}
}

// byNames reads names. One that cannot be read is empty, so that each is where its item
// is in the list.
func (r *ruleReader) byNames(n *node, route hotparam.Route) []hotparam.Param {
	if len(n.items) == 0 {
		r.reject(n, "name at least one parameter, or write by: all", "by: the list is empty")
	}
	var names []hotparam.Param
	for _, item := range n.items {
		var p hotparam.Param
		if s, ok := r.scalar(item, "by"); ok {
			var err *nameError
			if p, err = parseName(s, route); err != nil {
				r.reject(item, err.hint, "by %s: %s", quote(s), err.message)
				p = hotparam.Param{}
			}
		}
		names = append(names, p)
	}
	return names
}

// nameError is an error of a parameter's name.
type nameError struct {
	message, hint string
	ofRoute       bool // the route does not have, or has, a wildcard of the name
}

// parseName reads "name" or "source:name" in a rule of the route. A file names wildcards
// of its routes alone, and a bare name is one of the query and none that the path has,
// too; code may know more of its paths.
func parseName(s string, route hotparam.Route) (hotparam.Param, *nameError) {
	p, message, hint := hotparam.ParseName(s)
	name := p.Name
	switch {
	case message != "":
		return hotparam.Param{}, &nameError{message, hint, false}
	case p.Source == hotparam.Path && !slices.Contains(route.Names(), name) && !open(route):
		return hotparam.Param{}, &nameError{fmt.Sprintf("the route has no wildcard {%s}", name), fmt.Sprintf("write the route with /{%s}/ in its place", name), true}
	case !strings.Contains(s, ":") && slices.Contains(route.Names(), name):
		return hotparam.Param{}, &nameError{
			fmt.Sprintf("the route has a wildcard {%s}, but a bare name is one of the query", name),
			fmt.Sprintf("write path:%s for the wildcard, query:%s for the query", name, name), true,
		}
	}
	return p, nil
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

// open reports whether requests of the route can have wildcards that it does not
// name, because the program's router knows narrower patterns. A route that is
// bad is reported elsewhere.
func open(route hotparam.Route) bool {
	return route.IsZero() || route.IsAny() || strings.HasSuffix(route.Path(), "/")
}
