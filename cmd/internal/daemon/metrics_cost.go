package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/published"
)

// costMetrics are the metrics of the rules that find hot keys by their cost.
var costMetrics = []figure.Figure[aggregator.DetectorStats]{
	figure.New(prometheus.GaugeValue, "cost_keys", "Keys of a pool that are hot by their cost, by stage.", []string{"pool", "stage"},
		func(d *aggregator.DetectorStats, emit func(float64, ...string)) {
			for _, p := range d.Pools {
				for _, stage := range []published.HoldStage{published.HoldTrial, published.HoldKept, published.HoldSuspected} {
					emit(float64(p.Keys[stage]), p.Name, string(stage))
				}
			}
		}).
		Explain("keys that are [hot by cost](docs/RULES.md#hot-by-cost), by their pool: `trial` (held to see whether the " +
			"others gain by it), `kept` (they did), `suspected` (not held: the limit is in shadow). A stage of `kept` " +
			"that lasts names a query to repair: `hotparam list` shows the keys"),
	routeMetric("cost_route_usual_seconds", "Usual time of a route's requests: the median of ten-second windows.",
		func(r *aggregator.RouteStats) (float64, bool) { return r.Seen.Usual, true }),
	routeMetric("cost_route_requests_per_second", "Requests a second of a route in the last ten-second window.",
		func(r *aggregator.RouteStats) (float64, bool) { return r.Rate, true }),
	routeMetric("cost_route_served_per_second", "Most requests a second of a route in a ten-second window that was not slow.",
		func(r *aggregator.RouteStats) (float64, bool) { return r.Seen.Served, true }).
		Explain("most requests a second of a route in a ten-second window that was not slow: its requests took at most " +
			"1.5 times the usual time on average. Windows are forgotten after one to two days, and when the aggregator " +
			"restarts"),
	routeMetric("cost_route_slow_per_second", "Least requests a second of a route in a ten-second window that was slow.",
		func(r *aggregator.RouteStats) (float64, bool) { return r.Seen.SlowFrom, r.Seen.Slow > 0 }).
		Explain("least requests a second of a route in a ten-second window that was slow, or in a neighbour of it if " +
			"that had more; none if no window was slow. Below " +
			"`hotparam_cost_route_served_per_second`, bursts, or something other than the number of requests, make the route slow"),
	routeMetric("cost_route_windows", "Number of ten-second windows that a route was seen for.",
		func(r *aggregator.RouteStats) (float64, bool) { return float64(r.Seen.Windows), true }),
	routeMetric("cost_route_slow_windows", "Number of ten-second windows that a route was slow in.",
		func(r *aggregator.RouteStats) (float64, bool) { return float64(r.Seen.Slow), true }),
	routeMetric("cost_route_requests", "Number of requests of a route in the windows that it was seen for.",
		func(r *aggregator.RouteStats) (float64, bool) { return float64(r.Seen.Requests), true }),
}

// routeMetric returns a gauge of the routes of all pools, of which there are at most 64 in each pool.
func routeMetric(name, help string, value func(*aggregator.RouteStats) (v float64, known bool)) figure.Figure[aggregator.DetectorStats] {
	return figure.New(prometheus.GaugeValue, name, help, []string{"pool", "rule", "route"}, func(d *aggregator.DetectorStats, emit func(float64, ...string)) {
		for _, p := range d.Pools {
			for i := range p.Routes {
				if v, known := value(&p.Routes[i]); known {
					emit(v, p.Name, p.Routes[i].Rule, p.Routes[i].Route)
				}
			}
		}
	})
}
