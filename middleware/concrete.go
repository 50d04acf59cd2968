package middleware

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/rules"
)

// concreteRoutes finds programs that give the guard paths as routes, "/u/7" in place of
// "/u/{id}". Each path then makes keys of its own: their number has no bound, and the counts
// of a value on different paths are never added up. It looks at a route when the route is
// made, so requests of known routes cost nothing.
type concreteRoutes struct {
	found atomic.Int64
	full  atomic.Bool // that a cache is full has been logged
	log   *slog.Logger
	lines loglimit.Limit
}

// maxConcrete is how many paths of a rule's template may be routes before it is logged. A
// program may have some on purpose, such as "/u/me" beside "/u/{id}".
const maxConcrete = 100

// concreteLines bounds the log, in which each rule is named at most once for each reload.
var concreteLines = loglimit.Rate{Burst: 4, Every: time.Hour}

// check looks at a route that was made.
func (c *concreteRoutes) check(s *ruleSet, method, name string) {
	if space := strings.IndexAny(name, " \t"); space >= 0 {
		method, name = name[:space], strings.TrimLeft(name[space:], " \t")
	}
	if slash := strings.IndexByte(name, '/'); slash < 0 || strings.Contains(name, "{") || strings.HasSuffix(name, "/") {
		return
	} else if slash > 0 {
		name = name[slash:] // a pattern may begin with a host
	}
	path := string(rules.AppendPath(nil, name))
	counted := false
	for i := range s.rules {
		r := &s.rules[i]
		template := &r.Match.Route
		if !hasSegment(template) || !matchesPath(template, method, path) {
			continue
		}
		if counted = true; r.concrete.Add(1) == maxConcrete+1 {
			c.warn(r)
		}
	}
	if counted {
		c.found.Add(1)
	}
}

// matchesPath is Matches for a route that may be without a method.
func matchesPath(r *rules.Route, method, path string) bool {
	if method == "" {
		return r.Values(path, nil)
	}
	return r.Matches(method, path)
}

// hasSegment reports whether one segment of the route is a wildcard. Below one of the rest
// of the path a program may have any number of routes.
func hasSegment(r *rules.Route) bool {
	for part := range strings.SplitSeq(r.Path(), "/") {
		if strings.HasPrefix(part, "{") && !strings.HasSuffix(part, "...}") && part != "{$}" {
			return true
		}
	}
	return false
}

// warnOfFull logs once that there is no room for another route. From then on it is called for
// each request of a route that is not known, so it only reads.
func (c *concreteRoutes) warnOfFull() {
	if c.full.Load() || c.full.Swap(true) {
		return
	}
	c.log.Warn("there are too many routes to remember: further ones are computed for each request, which is slow, and each makes its own keys; pass the router's pattern as the route, see WithRoute, and few names of resources",
		"routes", maxNames)
}

func (c *concreteRoutes) warn(r *rule) {
	if _, ok := c.lines.Allow(concreteLines, time.Now()); !ok {
		return
	}
	c.log.Warn("routes are paths, though a rule has their template: each path makes keys of its own, so their number has no bound; pass the router's pattern as the route, see WithRoute",
		"rule", r.ID, "template", r.Match.Route.String(), "paths", maxConcrete+1)
}
