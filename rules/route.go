package rules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

// Route is a pattern for requests. "*" matches all requests. A path is a pattern as in
// http.ServeMux, with or without a method before it ("GET /u/{id}", "/static/",
// "/files/{path...}", "/{$}"). Any other text is the name of a resource. Paths are matched in
// their escaped form, as [base.AppendPath] writes it; a pattern may be escaped or not. A Route is
// immutable.
type Route struct {
	text     string
	method   string // empty for any method
	path     string // empty for "*" and for a resource
	segments []segment
	subtree  bool   // the path ends in "/" or {name...}, so that everything below matches
	exact    string // canonical path of a route without wildcards, compared as a whole; else empty
}

type segment struct {
	literal string // "" for a wildcard
	name    string // name of a wildcard; "" for a subtree's unnamed rest
}

var (
	errRouteEmpty    = errors.New("the route is empty")
	errRouteWildcard = errors.New("a wildcard is a whole segment: /{name}/")
	errRouteRest     = errors.New("{name...} and {$} can only be the last segment")
	errRouteName     = errors.New("a wildcard's name is a Go identifier, and used once")
	errRouteQuery    = errors.New("a route has no query; use match.query")
	errRouteHost     = errors.New("hosts in routes are not supported; begin with / or METHOD /")
)

// ParseRoute reads a route.
func ParseRoute(s string) (Route, error) {
	r, err := parseRoute(strings.TrimSpace(s))
	if err != nil {
		return Route{}, fmt.Errorf("route %q: %w", s, err)
	}
	return r, nil
}

func parseRoute(s string) (Route, error) {
	if s == "" {
		return Route{}, errRouteEmpty
	}
	r := Route{text: s}
	method, path, found := strings.Cut(s, " ")
	path = strings.TrimLeft(path, " ")
	switch {
	case found && isMethod(method) && strings.HasPrefix(path, "/"):
		r.method, r.path = method, path
		r.text = method + " " + path
	case strings.HasPrefix(s, "/"):
		r.path = s
	case found && isMethod(method) && strings.Contains(path, "/"):
		return Route{}, errRouteHost
	default:
		return r, nil
	}
	if strings.Contains(r.path, "?") {
		return Route{}, errRouteQuery
	}
	return r, r.parsePath()
}

func (r *Route) parsePath() error {
	if !strings.Contains(r.path, "{") && !strings.HasSuffix(r.path, "/") {
		r.exact = string(base.AppendPath(nil, r.path))
		return nil
	}
	parts := strings.Split(r.path[1:], "/")
	names := make(map[string]bool)
	for i, part := range parts {
		last := i == len(parts)-1
		if last && part == "" {
			r.subtree = true
			break
		}
		if last && part == "{$}" {
			r.segments = append(r.segments, segment{})
			break
		}
		inner, ok := strings.CutPrefix(part, "{")
		if !ok {
			if strings.ContainsAny(part, "{}") {
				return errRouteWildcard
			}
			r.segments = append(r.segments, segment{literal: string(base.AppendPath(nil, part))})
			continue
		}
		inner, ok = strings.CutSuffix(inner, "}")
		if !ok {
			return errRouteWildcard
		}
		name, multi := strings.CutSuffix(inner, "...")
		if inner == "$" || multi && !last {
			return errRouteRest
		}
		if !isIdentifier(name) || names[name] {
			return errRouteName
		}
		names[name] = true
		r.segments = append(r.segments, segment{name: name})
		r.subtree = multi
	}
	return nil
}

// IsZero reports whether no route was given.
func (r Route) IsZero() bool { return r.text == "" }

// IsAny reports whether the route is "*".
func (r Route) IsAny() bool { return r.text == "*" }

// String returns the route in the form in which it was parsed.
func (r Route) String() string { return r.text }

// Names returns the names of the path's wildcards, in their order.
func (r Route) Names() []string {
	var names []string
	for _, s := range r.segments {
		if s.name != "" {
			names = append(names, s.name)
		}
	}
	return names
}

// Matches reports whether a request with this method and escaped path belongs to the route. A
// route for GET also matches HEAD, as in http.ServeMux.
func (r Route) Matches(method, path string) bool {
	if r.path == "" {
		return r.IsAny()
	}
	return r.hasMethod(method) && r.matchesPath(path, nil)
}

// Covers reports whether requests of some method with this escaped path may belong to the route. A
// resource covers the path that an RPC of this name has.
func (r *Route) Covers(path string) bool {
	switch {
	case r.IsAny():
		return true
	case r.path == "":
		return path == "/"+r.text
	case strings.IndexByte(path, '%') >= 0:
		path = string(base.AppendPath(nil, path))
	}
	return r.matchesPath(path, nil)
}

// hasMethod reports whether the route is for requests with this method.
func (r *Route) hasMethod(method string) bool {
	return r.method == "" || r.method == method || r.method == "GET" && method == "HEAD"
}

// Resource reports whether the route is "*" or the resource with this name.
func (r Route) Resource(name string) bool { return r.IsAny() || r.text == name }

// Path returns the route's path pattern without the method, or "" for "*" and for resources.
func (r Route) Path() string { return r.path }

// SamePattern reports whether the route is exactly this pattern of a router.
func (r Route) SamePattern(method, path string) bool {
	return r.path == path && (r.method == "" || r.method == method)
}

// MayMatch reports whether a request with this method, whose path matches the pattern, can belong
// to the route, which must not be "*". It may return true if none can.
func (r Route) MayMatch(method string, pattern Route) bool {
	if r.path == "" || !r.hasMethod(method) {
		return false
	}
	return r.exact == "" || pattern.path == "" || pattern.matchesPath(r.exact, nil)
}

// Values calls f with each wildcard's name and its value in the path, still escaped, in their
// order. It reports whether the path matches. f may have been called even if it does not.
func (r Route) Values(path string, f func(name, value string)) bool {
	if r.path == "" {
		return r.IsAny()
	}
	return r.matchesPath(path, f)
}

// matchesPath implements Values for a route with a path. f may be nil.
func (r *Route) matchesPath(path string, f func(name, value string)) bool {
	if r.exact != "" {
		return path == r.exact
	}
	if !strings.HasPrefix(path, "/") {
		return false
	}
	unmatched := path[1:]
	for i := range r.segments {
		s := &r.segments[i]
		if r.subtree && s.name != "" && i == len(r.segments)-1 && !strings.HasSuffix(r.path, "/") {
			if f != nil {
				f(s.name, unmatched)
			}
			return true
		}
		part, tail, more := unmatched, "", false
		if slash := strings.IndexByte(unmatched, '/'); slash >= 0 {
			part, tail, more = unmatched[:slash], unmatched[slash+1:], true
		}
		switch {
		case s.name == "" && part != s.literal, s.name != "" && part == "":
			return false
		case s.name != "" && f != nil:
			f(s.name, part)
		}
		if i == len(r.segments)-1 {
			return more == r.subtree
		}
		if !more {
			return false
		}
		unmatched = tail
	}
	return r.subtree // "/" alone: everything
}

func isMethod(s string) bool {
	return consistsOf(s, func(c byte) bool { return 'A' <= c && c <= 'Z' })
}

// consistsOf reports whether s is not empty, and all of its bytes are valid.
func consistsOf(s string, valid func(c byte) bool) bool {
	for i := range len(s) {
		if !valid(s[i]) {
			return false
		}
	}
	return s != ""
}

func isIdentifier(s string) bool {
	return consistsOf(s, func(c byte) bool { return c == '_' || kinds[c] >= digit }) && kinds[s[0]] != digit
}
