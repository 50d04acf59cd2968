package status

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
	// read calls emit for each value of the metric, with the value of its label if it has
	// one.
	read func(stats *S, emit func(value float64, label ...string))
}

func NewFigure[S any](kind prometheus.ValueType, name, help string, labels []string, read func(*S, func(float64, ...string))) Figure[S] {
	name = "hotparam_" + name
	return Figure[S]{Name: name, Help: help, Labels: labels, Kind: kind, desc: prometheus.NewDesc(name, help, labels, nil), read: read}
}

// Explain sets what METRICS.md says of the metric in place of its help: Markdown, without a
// capital and a full stop.
func (f Figure[S]) Explain(meaning string) Figure[S] {
	f.Meaning = meaning
	return f
}

func Counter[S any](name, help string, value func(*S) int64) Figure[S] {
	return NewFigure(prometheus.CounterValue, name, help, nil, func(s *S, emit func(float64, ...string)) { emit(float64(value(s))) })
}

func Gauge[S any](name, help string, value func(*S) float64) Figure[S] {
	return NewFigure(prometheus.GaugeValue, name, help, nil, func(s *S, emit func(float64, ...string)) { emit(value(s)) })
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
	return NewFigure(prometheus.CounterValue, name, help, []string{label}, func(s *S, emit func(float64, ...string)) {
		values(s, func(label string, n int64) { emit(float64(n), label) })
	})
}

// GaugesBy is a gauge with a label: values calls emit for each of the label's values.
func GaugesBy[S any](name, help, label string, values func(s *S, emit func(label string, v float64))) Figure[S] {
	return NewFigure(prometheus.GaugeValue, name, help, []string{label}, func(s *S, emit func(float64, ...string)) {
		values(s, func(label string, v float64) { emit(v, label) })
	})
}

// Samples takes the values of one scrape.
type Samples chan<- prometheus.Metric

// Collect sends the values of all metrics in a table.
func Collect[S any](to Samples, table []Figure[S], stats S) {
	for i := range table {
		m := &table[i]
		m.read(&stats, func(value float64, label ...string) {
			to <- prometheus.MustNewConstMetric(m.desc, m.Kind, value, label...)
		})
	}
}
