// Package figure declares metrics: each figure of some statistics has its name, its help, how it
// is read and what METRICS.md says of it in one place.
package figure

import "github.com/prometheus/client_golang/prometheus"

// Figure is one metric of the statistics S: its name, its help, how it is read and what
// METRICS.md says of it are declared together, once.
type Figure[S any] struct {
	Name   string
	Help   string
	Labels []string
	Kind   prometheus.ValueType
	// Meaning is the metric's cell in METRICS.md, in Markdown: more than the help where there
	// is more to say, as each value of a label, and what to do.
	Meaning string
	desc    *prometheus.Desc
	collect func(stats *S, desc *prometheus.Desc, to Samples)
}

// New returns a metric of which read calls emit for each value, with the values of its labels.
func New[S any](kind prometheus.ValueType, name, help string, labels []string, read func(stats *S, emit func(value float64, labels ...string))) Figure[S] {
	return newFigure(kind, name, help, labels, func(stats *S, desc *prometheus.Desc, to Samples) {
		read(stats, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
		})
	})
}

func newFigure[S any](kind prometheus.ValueType, name, help string, labels []string, collect func(*S, *prometheus.Desc, Samples)) Figure[S] {
	name = "hotparam_" + name
	return Figure[S]{Name: name, Help: help, Labels: labels, Kind: kind, desc: prometheus.NewDesc(name, help, labels, nil), collect: collect}
}

// Histogram is a histogram, of which buckets have the counts up to each bound.
func Histogram[S any](name, help string, value func(*S) (count uint64, sum float64, buckets map[float64]uint64)) Figure[S] {
	return newFigure(prometheus.UntypedValue, name, help, nil, func(s *S, desc *prometheus.Desc, to Samples) {
		count, sum, buckets := value(s)
		to <- prometheus.MustNewConstHistogram(desc, count, sum, buckets)
	})
}

// Explain sets what METRICS.md says of the metric in place of its help: Markdown, without a
// capital and a full stop.
func (f Figure[S]) Explain(meaning string) Figure[S] {
	f.Meaning = meaning
	return f
}

// Counter is a counter without labels.
func Counter[S any](name, help string, value func(*S) int64) Figure[S] {
	return New(prometheus.CounterValue, name, help, nil, func(s *S, emit func(float64, ...string)) { emit(float64(value(s))) })
}

// Gauge is a gauge without labels.
func Gauge[S any](name, help string, value func(*S) float64) Figure[S] {
	return New(prometheus.GaugeValue, name, help, nil, func(s *S, emit func(float64, ...string)) { emit(value(s)) })
}

// Flag is a gauge of 0 or 1.
func Flag[S any](name, help string, value func(*S) bool) Figure[S] {
	return Gauge(name, help, func(s *S) float64 {
		if value(s) {
			return 1
		}
		return 0
	})
}

// CountersBy is a counter with a label: values calls emit for each of the label's values.
func CountersBy[S any](name, help, label string, values func(s *S, emit func(label string, n int64))) Figure[S] {
	return New(prometheus.CounterValue, name, help, []string{label}, func(s *S, emit func(float64, ...string)) {
		values(s, func(label string, n int64) { emit(float64(n), label) })
	})
}

// GaugesBy is a gauge with a label: values calls emit for each of the label's values.
func GaugesBy[S any](name, help, label string, values func(s *S, emit func(label string, v float64))) Figure[S] {
	return New(prometheus.GaugeValue, name, help, []string{label}, func(s *S, emit func(float64, ...string)) {
		values(s, func(label string, v float64) { emit(v, label) })
	})
}

// Samples takes the values of one scrape.
type Samples chan<- prometheus.Metric

// Describe sends what the metrics of a table are.
func Describe[S any](to chan<- *prometheus.Desc, table []Figure[S]) {
	for i := range table {
		to <- table[i].desc
	}
}

// Collect sends the values of all metrics in a table.
func Collect[S any](to Samples, table []Figure[S], stats S) {
	for i := range table {
		table[i].collect(&stats, table[i].desc, to)
	}
}
