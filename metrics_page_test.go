package hotparam

import (
	"flag"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotparam/hotparam/internal/metricpage"
)

//go:generate go test . -run ^TestMetricsPageIsUpToDate$ -update

var updatePage = flag.Bool("update", false, "write METRICS.md instead of comparing it")

// METRICS.md is what the declarations say.
func TestMetricsPageIsUpToDate(t *testing.T) {
	kinds := map[prometheus.ValueType]string{
		prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge", prometheus.UntypedValue: "histogram",
	}
	var rows []metricpage.Row
	for _, m := range allMetrics {
		rows = append(rows, metricpage.Row{Name: m.name, Labels: m.labels, Kind: kinds[m.kind], Help: m.help, Meaning: m.meaning})
	}
	if err := metricpage.Sync("METRICS.md", map[string][]metricpage.Row{"application": rows}, *updatePage); err != nil {
		t.Error(err)
	}
}
