package hotparam

import (
	"flag"
	"testing"

	"github.com/hotparam/hotparam/internal/metricpage"
)

//go:generate go test . -run ^TestMetricsPageIsUpToDate$ -update

var updatePage = flag.Bool("update", false, "write METRICS.md instead of comparing it")

// METRICS.md agrees with the declarations.
func TestMetricsPageIsUpToDate(t *testing.T) {
	if err := metricpage.Sync("METRICS.md", map[string][]metricpage.MetricRow{"application": metricpage.Rows(figures)}, *updatePage); err != nil {
		t.Error(err)
	}
}
