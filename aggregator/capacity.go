package aggregator

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hotparam/hotparam/aggregator/internal/blame"
	"github.com/hotparam/hotparam/internal/capacity"
	"github.com/hotparam/hotparam/rules"
)

// capacities measures what the routes of a pool serve at their usual speed. It forgets windows that are
// older than two spans, since a back end changes.
type capacities struct {
	routes map[string]*routeCapacity // keys are those of routeOf
	start  time.Time                 // start of the present window
	span   time.Time                 // start of the present span
}

// routeCapacity is a route, with the usage in the present window.
type routeCapacity struct {
	usage          blame.Usage
	shown          RouteStats
	newest, before capacity.Route // windows of the present span and of the one before
}

const (
	// maxCapacityRoutes bounds the routes of a pool, at the end of a window: those with the most
	// requests stay.
	maxCapacityRoutes = 64
	// capacitySpan is as long as a day, whose hours differ.
	capacitySpan = 24 * time.Hour
)

// add adds the usage of an interval that ends now. A rule whose keys have no route has one route, a
// star: each of its values is a route for the judge, and values must not become labels of metrics.
func (c *capacities) add(now time.Time, routes map[string]*blame.RouteUsage, byID map[string]*rules.Rule) {
	if c.routes == nil {
		c.routes, c.start, c.span = make(map[string]*routeCapacity), now, now
	}
	for name, u := range routes {
		id, route, _ := strings.Cut(name, " ")
		rule := byID[id]
		if rule == nil {
			continue
		}
		if rule.ParamsOnly {
			route = "*"
			name = id + " " + route
		}
		r := c.routes[name]
		if r == nil {
			if len(c.routes) >= 2*maxCapacityRoutes || !utf8.ValidString(name) { // labels are UTF-8
				continue
			}
			r = &routeCapacity{}
			r.shown.Rule, r.shown.Route = id, route
			c.routes[name] = r
		}
		r.usage.Ended += u.Ended
		r.usage.Took += u.Took
	}
	if length := now.Sub(c.start); length < 0 || length >= capacity.Window {
		c.endWindow(now, length)
	}
}

// endWindow ends a window. One that is much too long was interrupted, and one with a negative length met
// a change of the clock, so neither counts.
func (c *capacities) endWindow(now time.Time, length time.Duration) {
	next := now.Sub(c.span) >= capacitySpan
	if c.start = now; next || now.Before(c.span) {
		c.span = now
	}
	for _, r := range c.routes {
		if length > 0 && length < 2*capacity.Window {
			r.newest.Add(max(0, r.usage.Ended), r.usage.Took, length)
			r.shown.Rate = float64(max(0, r.usage.Ended)) / length.Seconds()
		}
		r.usage = blame.Usage{}
		var both capacity.Route
		both.Merge(&r.before)
		both.Merge(&r.newest)
		if r.shown.Seen = both.Seen(); next {
			r.before, r.newest = r.newest, capacity.Route{}
		}
	}
	c.evict()
}

// evict drops the routes with the fewest requests beyond the bound, and those without any.
func (c *capacities) evict() {
	all := c.list()
	slices.SortStableFunc(all, func(a, b RouteStats) int { return cmp.Compare(b.Seen.Requests, a.Seen.Requests) })
	for i, r := range all {
		if i >= maxCapacityRoutes || r.Seen.Requests == 0 {
			delete(c.routes, r.Rule+" "+r.Route)
		}
	}
}

// dropOthers drops the routes of rules that the pool no longer has.
func (c *capacities) dropOthers(has func(rule string) bool) {
	for name, r := range c.routes {
		if !has(r.shown.Rule) {
			delete(c.routes, name)
		}
	}
}

// list returns the routes, sorted by rule and route.
func (c *capacities) list() []RouteStats {
	all := make([]RouteStats, 0, len(c.routes))
	for _, r := range c.routes {
		all = append(all, r.shown)
	}
	slices.SortFunc(all, func(a, b RouteStats) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Route, b.Route))
	})
	return all
}
