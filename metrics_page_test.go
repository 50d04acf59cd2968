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
	for _, f := range figures {
		rows = append(rows, metricpage.Row{Name: f.Name, Labels: f.Labels, Kind: kinds[f.Kind], Help: f.Help, Meaning: f.Meaning})
	}
	if err := metricpage.Sync("METRICS.md", map[string][]metricpage.Row{"application": rows}, *updatePage); err != nil {
		t.Error(err)
	}
}
