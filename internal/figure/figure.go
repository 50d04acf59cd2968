// Package figure declares metrics. One declaration holds the name and the help of a metric, the
// function that reads it and its text for METRICS.md.
package figure

import "github.com/prometheus/client_golang/prometheus"

// Figure is one metric of the statistics S. Its name, its help, how it is read and its entry in
// METRICS.md are declared together, once.
type Figure[S any] struct {
	Name   string
	Help   string
	Labels []string
	Kind   prometheus.ValueType
	// Meaning is the metric's cell in METRICS.md, in Markdown. It is longer than the help where
	// there is more to say, such as each value of a label and what to do about it.
	Meaning string
	desc    *prometheus.Desc
	collect func(stats *S, desc *prometheus.Desc, to Samples)
}

// New returns a metric. On each scrape, read calls emit once for each value, with the values of
// its labels.
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

// Histogram returns a metric that is a histogram. The buckets that value returns hold the
// cumulative count up to each upper bound.
func Histogram[S any](name, help string, value func(*S) (count uint64, sum float64, buckets map[float64]uint64)) Figure[S] {
	return newFigure(prometheus.UntypedValue, name, help, nil, func(s *S, desc *prometheus.Desc, to Samples) {
		count, sum, buckets := value(s)
		to <- prometheus.MustNewConstHistogram(desc, count, sum, buckets)
	})
}

// Explain returns f with meaning in place of its help in METRICS.md. The meaning is Markdown,
// without an initial capital or a full stop.
func (f Figure[S]) Explain(meaning string) Figure[S] {
	f.Meaning = meaning
	return f
}

// Counter returns a counter without labels.
func Counter[S any](name, help string, value func(*S) int64) Figure[S] {
	return New(prometheus.CounterValue, name, help, nil, func(s *S, emit func(float64, ...string)) { emit(float64(value(s))) })
}

// Gauge returns a gauge without labels.
func Gauge[S any](name, help string, value func(*S) float64) Figure[S] {
	return New(prometheus.GaugeValue, name, help, nil, func(s *S, emit func(float64, ...string)) { emit(value(s)) })
}

// Flag returns a gauge whose value is 0 or 1.
func Flag[S any](name, help string, value func(*S) bool) Figure[S] {
	return Gauge(name, help, func(s *S) float64 {
		if value(s) {
			return 1
		}
		return 0
	})
}

// CountersBy returns a counter with one label. On each scrape, values calls emit for each value
// of the label.
func CountersBy[S any](name, help, label string, values func(s *S, emit func(label string, n int64))) Figure[S] {
	return New(prometheus.CounterValue, name, help, []string{label}, func(s *S, emit func(float64, ...string)) {
		values(s, func(label string, n int64) { emit(float64(n), label) })
	})
}

// GaugesBy returns a gauge with one label. On each scrape, values calls emit for each value of
// the label.
func GaugesBy[S any](name, help, label string, values func(s *S, emit func(label string, v float64))) Figure[S] {
	return New(prometheus.GaugeValue, name, help, []string{label}, func(s *S, emit func(float64, ...string)) {
		values(s, func(label string, v float64) { emit(v, label) })
	})
}

// Samples receives the values of one scrape.
type Samples chan<- prometheus.Metric

// Describe sends the descriptors of all metrics in a table.
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
