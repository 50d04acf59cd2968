package suggest

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/capacity"
)

// served counts the requests of a route in windows, for [capacity.Route].
type served struct {
	capacity.Route
	window time.Duration // start of the present window, since the start of the log
	n      int64         // number of its requests
	timed  int64         // number of those with a duration
	took   time.Duration
}

// serve counts a request for the capacity of its route.
func (s *survey) serve(r *routePattern, e *accesslog.Entry) {
	v := &r.served
	if window := e.Time.Sub(s.first).Truncate(capacity.Window); window != v.window {
		v.endWindow()
		if window > v.window+capacity.Window {
			v.Add(0, 0, capacity.Window)
		}
		v.window = window
	}
	v.n++
	if e.Took > 0 {
		v.timed++
		v.took += e.Took
	}
}

// endWindow ends the present window. Requests without a duration are taken to be as long as the others.
func (v *served) endWindow() {
	if v.timed > 0 {
		v.Add(v.n, time.Duration(float64(v.took)*float64(v.n)/float64(v.timed)), capacity.Window)
	}
	v.n, v.timed, v.took = 0, 0, 0
}

// capacities returns what the routes were seen to serve, in descending order of requests. The
// last window of the log is not over, so it is left out.
func (s *survey) capacities() (all []*Capacity) {
	last := s.last.Sub(s.first).Truncate(capacity.Window)
	for _, r := range s.all {
		if r.served.window < last {
			r.served.endWindow()
		}
		r.served.Add(0, 0, capacity.Window) // nothing follows
		if c := (&Capacity{Route: r.pattern, Seen: r.served.Seen(), params: r.parameters()}); c.Windows > 0 {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *Capacity) int { return cmp.Compare(b.Requests, a.Requests) })
	return all
}

// parameters returns the names of the route's parameters, in descending order of requests.
func (r *routePattern) parameters() (names []string) {
	for name, p := range r.params {
		if p.requests >= LeastRequests {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.params[b].requests, r.params[a].requests), cmp.Compare(a, b))
	})
	return names
}
