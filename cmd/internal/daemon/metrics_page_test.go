package daemon

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/follow"
	"github.com/hotparam/hotparam/cmd/internal/gateway/service"
	"github.com/hotparam/hotparam/cmd/internal/page"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/internal/metricpage"
)

//go:generate go test . -run ^TestMetricsPageIsUpToDate$ -update

var updatePage = flag.Bool("update", false, "write METRICS.md instead of comparing it")

// METRICS.md matches the declarations.
func TestMetricsPageIsUpToDate(t *testing.T) {
	err := metricpage.Sync("../../../METRICS.md", map[string][]metricpage.MetricRow{
		"statsd":    append(metricpage.Rows(statsdDecoderMetrics), metricpage.Rows(statsdMetrics)...),
		"detector":  metricpage.Rows(detectorMetrics),
		"cost":      metricpage.Rows(costMetrics),
		"publisher": metricpage.Rows(publisherMetrics),
		"process":   slices.Concat(metricpage.Rows(rulesfile.Figures), metricpage.Rows(page.Figures), metricpage.Rows(status.HTTPFigures), metricpage.Rows(status.BuildFigures)),
		"fleet":     metricpage.Rows(fleetMetrics),
		"kafka":     append(append(metricpage.Rows(kafkaDecoderMetrics), metricpage.Rows(kafkaMetrics)...), metricpage.Rows(partitionMetrics)...),
		"graphite":  metricpage.Rows(graphiteMetrics),
		"baselines": metricpage.Rows(baselineMetrics),
		"history":   metricpage.Rows(historyMetrics),
		"webhook":   metricpage.Rows(webhookMetrics),
		"guard":     append(metricpage.Rows(service.DoorFigures), metricpage.Rows(service.FileFigures)...),
		"follow":    metricpage.Rows(follow.Figures),
		"operate":   metricpage.Rows(page.ActFigures),
	}, *updatePage)
	if err != nil {
		t.Error(err)
	}
}

// A help is a sentence of its own: it does not refer to the text that METRICS.md has around it.
func TestHelpIsASentence(t *testing.T) {
	for _, f := range slices.Concat(metricpage.Rows(detectorMetrics), metricpage.Rows(costMetrics), metricpage.Rows(publisherMetrics)) {
		if text := strings.TrimPrefix(f.Help, metricpage.DataLoss); !strings.HasSuffix(text, ".") || strings.Contains(text, "`") {
			t.Errorf("%s: %q", f.Name, f.Help)
		}
	}
}
