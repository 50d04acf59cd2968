package middleware

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/rules"
)

// concreteRoutes detects programs that pass paths as routes, "/u/7" instead of "/u/{id}".
// Each path then makes its own keys: their number has no bound, and the counts of a value on
// different paths are never added up. A route is checked when it is made, so requests of
// known routes cost nothing.
type concreteRoutes struct {
	found atomic.Int64
	full  atomic.Bool // whether a full cache has been logged
	log   *slog.Logger
	lines loglimit.Limit
}

// maxConcrete is the number of paths of a rule's template that may be routes before it is
// logged. A program may have some on purpose, such as "/u/me" next to "/u/{id}".
const maxConcrete = 100

// concreteLines bounds the log. Each rule is logged at most once per reload.
var concreteLines = loglimit.LineRate{Burst: 4, Every: time.Hour}

// hasSegment reports whether one segment of the route is a wildcard. A {name...} does not
// count, since a program may have any number of routes below it.
func hasSegment(r *rules.Route) bool {
	for part := range strings.SplitSeq(r.Path(), "/") {
		if strings.HasPrefix(part, "{") && !strings.HasSuffix(part, "...}") && part != "{$}" {
			return true
		}
	}
	return false
}

// warnOfFull logs once that there is no room for another route. From then on it is called for
// each request of an unknown route, so it only reads.
func (c *concreteRoutes) warnOfFull() {
	if c.full.Load() || c.full.Swap(true) {
		return
	}
	c.log.Warn("there are too many routes to remember: further ones are computed for each request, which is slow, and each makes its own keys; pass the router's pattern as the route, see WithRoute, and few names of resources",
		"routes", maxNames)
}

func (c *concreteRoutes) warn(r *rules.Rule) {
	if _, ok := c.lines.Allow(concreteLines, time.Now()); !ok {
		return
	}
	c.log.Warn("routes are paths, though a rule has their template: each path makes keys of its own, so their number has no bound; pass the router's pattern as the route, see WithRoute",
		"rule", r.ID, "template", r.Match.Route.String(), "paths", maxConcrete+1)
}
