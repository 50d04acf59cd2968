package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam"
)

// by reads which parameters make the rule's keys.
func (r *ruleReader) by(v values, route hotparam.Route, secrets hotparam.Secrets) hotparam.By {
	n := v.get("by")
	switch {
	case n == nil && v.has("hot"):
		return hotparam.By{Kind: hotparam.ByAll}
	case n == nil:
		return hotparam.By{}
	case n.kind == listKind:
		return hotparam.By{Kind: hotparam.ByNames, Names: r.byNames(n, v.has("hot"), route, secrets)}
	}
	const hint = "by: all, by: each, or names in a list as in by: [q, path:id]"
	switch s, ok := r.scalar(n, "by"); {
	case !ok:
	case s == "all":
		return hotparam.By{Kind: hotparam.ByAll}
	case s == "each":
		return hotparam.By{Kind: hotparam.ByEach}
	default:
		r.report(n.at, hint, "by %s: want all, each or a list of names", quote(s))
	}
	return hotparam.By{}
}

func (r *ruleReader) byNames(n *node, hot bool, route hotparam.Route, secrets hotparam.Secrets) []hotparam.Param {
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
			err = checkName(p, s, names, hot, route, secrets)
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
