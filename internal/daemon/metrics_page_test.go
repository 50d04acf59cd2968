package daemon

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/follow"
	"github.com/hotparam/hotparam/internal/gateway/service"
	"github.com/hotparam/hotparam/internal/metricpage"
	"github.com/hotparam/hotparam/internal/status"
)

//go:generate go test . -run ^TestMetricsPageIsUpToDate$ -update

var updatePage = flag.Bool("update", false, "write METRICS.md instead of comparing it")

// METRICS.md is what the declarations say.
func TestMetricsPageIsUpToDate(t *testing.T) {
	err := metricpage.Sync("../../METRICS.md", map[string][]metricpage.Row{
		"statsd":    append(pageRows(statsdDecoderMetrics), pageRows(statsdMetrics)...),
		"detector":  pageRows(detectorMetrics),
		"publisher": pageRows(publisherMetrics),
		"process":   slices.Concat(pageRows(status.RulesFigures), pageRows(pageMetrics), pageRows(status.HTTPFigures), pageRows(status.BuildFigures)),
		"fleet":     pageRows(fleetMetrics),
		"kafka":     append(append(pageRows(kafkaDecoderMetrics), pageRows(kafkaMetrics)...), pageRows(partitionMetrics)...),
		"graphite":  pageRows(graphiteMetrics),
		"baselines": pageRows(baselineMetrics),
		"webhook":   pageRows(webhookMetrics),
		"guard":     append(pageRows(service.DoorFigures), pageRows(service.FileFigures)...),
		"follow":    pageRows(follow.Figures),
	}, *updatePage)
	if err != nil {
		t.Error(err)
	}
}

func pageRows[S any](table []figure.Figure[S]) (rows []metricpage.Row) {
	for i := range table {
		f := &table[i]
		rows = append(rows, metricpage.Row{Name: f.Name, Labels: f.Labels, Kind: kindWords[f.Kind], Help: f.Help, Meaning: f.Meaning})
	}
	return rows
}

var kindWords = map[prometheus.ValueType]string{prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge"}

// A help is a sentence that can be read by itself: what stands beside it in METRICS.md is not
// there.
func TestHelpIsASentence(t *testing.T) {
	for _, f := range append(pageRows(detectorMetrics), pageRows(publisherMetrics)...) {
		if text := strings.TrimPrefix(f.Help, metricpage.DataLoss); !strings.HasSuffix(text, ".") || strings.Contains(text, "`") {
			t.Errorf("%s: %q", f.Name, f.Help)
		}
	}
}
