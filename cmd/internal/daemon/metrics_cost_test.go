package daemon

import (
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/cmd/internal/suggest"
	"github.com/hotparam/hotparam/internal/capacity"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/published"
)

// pools collects the metrics of a detector's pools.
type pools struct{ aggregator.DetectorStats }

func (p pools) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(p, ch) }

func (p pools) Collect(ch chan<- prometheus.Metric) {
	figure.Collect(ch, detectorMetrics, p.DetectorStats)
	figure.Collect(ch, costMetrics, p.DetectorStats)
}

// Everything that was measured reaches hotparam rules suggest.
func TestSuggestReadsTheMetrics(t *testing.T) {
	seen := capacity.Seen{Usual: 0.005, Served: 412.5, SlowFrom: 500, Windows: 90, Slow: 2, Requests: 123_456_789}
	quiet := capacity.Seen{Usual: 1, Served: 0.1, Windows: 3, Requests: 3}
	stats := aggregator.DetectorStats{Pools: []aggregator.PoolStats{
		{Name: "orders-db", Keys: map[published.HoldStage]int{published.HoldTrial: 1, published.HoldKept: 2}, Routes: []aggregator.RouteStats{
			{Rule: "filters", Route: "GET /quiet", Seen: quiet},
			{Rule: "filters", Route: `GET /orders "new" \ {id}`, Rate: 40.5, Seen: seen},
		}},
		{Name: "other"},
	}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(pools{stats})
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	found, err := suggest.Pools(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Name != "orders-db" || found[0].Keys["trial"] != 1 || found[0].Keys["kept"] != 2 || len(found[0].Routes) != 2 || found[1].Name != "other" || len(found[1].Routes) != 0 {
		t.Fatalf("%+v", found)
	}
	r := found[0].Routes[0]
	if r.Pool != "orders-db" || r.Rule != "filters" || r.Route != `GET /orders "new" \ {id}` || r.Now != 40.5 || r.Seen != seen {
		t.Errorf("%+v", r)
	}
	if r := found[0].Routes[1]; r.Seen != quiet {
		t.Errorf("%+v", r)
	}
}
