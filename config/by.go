package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// selection reads the parameters that make a rule's keys.
func (d *decoder) selection(n *fileNode, what string, route rules.Route) rules.By {
	switch n.kind {
	case listKind:
		return rules.By{Kind: rules.ByNames, Names: d.byNames(n, route)}
	case mapKind:
		return d.byCombinations(n, route)
	}
	s, ok := d.scalar(n, what)
	kind, found := byWords[s]
	if ok && !found {
		d.reject(n, nearest(s, slices.Sorted(maps.Keys(byWords)), byForms), "by %s: want all, each, combinations or a list of names", quote(s))
	}
	return rules.By{Kind: kind}
}

var byWords = map[string]rules.ByKind{"all": rules.ByAll, "each": rules.ByEach, "combinations": rules.ByCombinations}

const byForms = "by: all, by: each, by: combinations, or names in a list as in by: [q, path:id]"

var bySection = section{
	name: "by", prefix: "by.",
	fields:  settings{{"combinations", shown(schemaSome(schemaWord)), "", ""}},
	example: byForms,
}

// byCombinations reads the parameters that are combined.
func (d *decoder) byCombinations(n *fileNode, route rules.Route) rules.By {
	v := d.section(n, bySection)
	if len(n.fields) == 0 {
		d.reject(n, byForms, "by is empty")
	}
	list := v.get("combinations")
	if list == nil {
		return rules.By{}
	}
	if list.kind != listKind {
		d.reject(list, "for example by: {combinations: [q, page]}; by: combinations combines all", "by.combinations: want a list of names, found %s", list.kind)
		return rules.By{}
	}
	return rules.By{Kind: rules.ByCombinations, Names: d.byNames(list, route)}
}

func (d *decoder) byNames(n *fileNode, route rules.Route) []rules.Param {
	if len(n.items) == 0 {
		d.reject(n, "name at least one parameter, or write by: all", "by: the list is empty")
	}
	return d.params(n.items, "by", route)
}

// params reads names of parameters. A name that cannot be read becomes empty, so that the indices
// match the items.
func (d *decoder) params(items []*fileNode, what string, route rules.Route) (names []rules.Param) {
	for _, item := range items {
		names = append(names, d.param(item, what, route))
	}
	return names
}

func (d *decoder) param(n *fileNode, what string, route rules.Route) (p rules.Param) {
	if s, ok := d.scalar(n, what); ok {
		var err *nameError
		if p, err = parseName(s, route); err != nil {
			d.reject(n, err.hint, "%s %s: %s", what, quote(s), err.message)
		}
	}
	return p
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

// open reports whether requests of the route can have wildcards that it does not name, because
// the program's router knows narrower patterns. It returns true for a bad route, which is
// reported elsewhere.
func open(route rules.Route) bool {
	return route.IsZero() || route.IsAny() || strings.HasSuffix(route.Path(), "/")
}
