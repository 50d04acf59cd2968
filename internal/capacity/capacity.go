// Package capacity measures the rates that a route serves while its requests take their usual
// time. It counts requests in windows of ten seconds, and groups the windows by the mean time of a
// request. The memory of a route is thus bounded, however long it is measured.
package capacity

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Window is the time over which requests are counted.
const Window = 10 * time.Second

// SlowFactor is the multiple of the usual time of a request above which a window is slow.
const SlowFactor = 1.5

// LeastRate is the number of requests a second from which the mean time of a window says that it
// was slow.
const LeastRate = 2

const (
	step           = 1.1 // ratio of the mean times of neighbouring groups
	leastRequests  = LeastRate * int64(Window/time.Second)
	enoughWindows  = 30
	enoughRequests = 200
)

// Route holds the windows of a route. The zero value is ready to use.
type Route struct {
	groups map[int]*group // by the logarithm of the mean time of a request
	last   float64        // requests a second of the last window

	pending *group  // group of the last window, if it had leastRequests
	low     float64 // requests a second by which to judge it
}

// group holds windows whose mean times of a request are alike.
type group struct {
	windows  int
	requests int64
	took     time.Duration
	high     float64 // highest requests a second of a window

	judged int     // number of windows with leastRequests, without the pending one
	low    float64 // lowest requests a second by which one of them is judged
}

// Add adds the next window, of some length, with the number of requests that ended in it and their
// time. A window that is slow is judged by the highest rate of it and its neighbours: requests may
// have waited since the previous one, and a crowd may have come at its end. A window without
// requests ends the queues of those before it.
func (r *Route) Add(requests int64, took, length time.Duration) {
	rate := 0.0
	if requests > 0 && length > 0 {
		rate = float64(requests) / length.Seconds()
	}
	if p := r.pending; p != nil {
		p.add(&group{judged: 1, low: max(r.low, rate)})
	}
	last := r.last
	if r.last, r.pending = rate, nil; rate == 0 || took <= 0 {
		return
	}
	one := group{windows: 1, requests: requests, took: took, high: rate}
	g := r.group(int(math.Floor(math.Log(one.each()) / math.Log(step))))
	if g.add(&one); requests >= leastRequests {
		r.pending, r.low = g, max(rate, last)
	}
}

// group returns the group with the number, which may be new.
func (r *Route) group(number int) *group {
	g := r.groups[number]
	if g == nil {
		g = &group{}
		if r.groups == nil {
			r.groups = make(map[int]*group)
		}
		r.groups[number] = g
	}
	return g
}

// Merge adds the windows of another route, and judges them as they are.
func (r *Route) Merge(o *Route) {
	for number, from := range o.groups {
		r.group(number).add(from)
	}
}

func (g *group) add(o *group) {
	if o.judged > 0 && (g.judged == 0 || o.low < g.low) {
		g.low = o.low
	}
	g.windows += o.windows
	g.requests += o.requests
	g.took += o.took
	g.high = max(g.high, o.high)
	g.judged += o.judged
}

func (g *group) each() float64 { return g.took.Seconds() / float64(g.requests) }

// Seen is what a route was seen to serve.
type Seen struct {
	// Usual is the usual time of a request in seconds: the median over the windows of their mean
	// times, weighted by their requests.
	Usual float64 `json:"usual_seconds"`
	// Served is the highest number of requests a second of a window that was not slow.
	Served float64 `json:"served_per_second"`
	// SlowFrom is the lowest number of requests a second by which a slow window is judged. Zero means
	// that no window was slow.
	SlowFrom float64 `json:"slow_from_per_second,omitempty"`
	// Windows is the number of windows with requests, and Slow the number of slow ones.
	Windows int `json:"windows"`
	Slow    int `json:"slow_windows"`
	// Requests is the number of requests in all windows.
	Requests int64 `json:"requests"`
}

// Seen returns what the route was seen to serve.
func (r *Route) Seen() (s Seen) {
	for _, g := range r.groups {
		s.Windows += g.windows
		s.Requests += g.requests
	}
	s.Usual = r.usual(s.Requests)
	for _, g := range r.groups {
		switch {
		case g.each() <= SlowFactor*s.Usual:
			s.Served = max(s.Served, g.high)
		case g.judged > 0:
			if s.Slow == 0 || g.low < s.SlowFrom {
				s.SlowFrom = g.low
			}
			s.Slow += g.judged
		}
	}
	return s
}

// usual returns the mean time of the group that has the median of all requests, or 0 without
// requests.
func (r *Route) usual(requests int64) float64 {
	below := int64(0)
	for _, number := range slices.Sorted(maps.Keys(r.groups)) {
		g := r.groups[number]
		if below += g.requests; 2*below >= requests {
			return g.each()
		}
	}
	return 0
}

// IsEnough reports whether the route was seen for long enough to judge by: five minutes with
// requests.
func (s *Seen) IsEnough() bool { return s.Windows >= enoughWindows && s.Requests >= enoughRequests }
