package main

import "github.com/prometheus/client_golang/prometheus"

// figure is one metric of the statistics S: its name, its help, how it is read and what
// METRICS.md says of it are declared together, once.
type figure[S any] struct {
	name, help string
	labels     []string
	kind       prometheus.ValueType
	// meaning is the metric's cell in METRICS.md, in Markdown: more than the help where there
	// is more to say, as each value of a label, and what to do.
	meaning string
	desc    *prometheus.Desc
	// read calls emit for each value of the metric, with the value of its label if it has
	// one.
	read func(stats *S, emit func(value float64, label ...string))
}

func newFigure[S any](kind prometheus.ValueType, name, help string, labels []string, read func(*S, func(float64, ...string))) figure[S] {
	name = "hotparam_" + name
	return figure[S]{name: name, help: help, labels: labels, kind: kind, desc: prometheus.NewDesc(name, help, labels, nil), read: read}
}

// explain sets what METRICS.md says of the metric in place of its help: Markdown, without a
// capital and a full stop.
func (f figure[S]) explain(meaning string) figure[S] {
	f.meaning = meaning
	return f
}

func counterOf[S any](name, help string, value func(*S) int64) figure[S] {
	return newFigure(prometheus.CounterValue, name, help, nil, func(s *S, emit func(float64, ...string)) { emit(float64(value(s))) })
}

func gaugeOf[S any](name, help string, value func(*S) float64) figure[S] {
	return newFigure(prometheus.GaugeValue, name, help, nil, func(s *S, emit func(float64, ...string)) { emit(value(s)) })
}

// flagOf is a gauge of 0 or 1.
func flagOf[S any](name, help string, value func(*S) bool) figure[S] {
	return gaugeOf(name, help, func(s *S) float64 {
		if value(s) {
			return 1
		}
		return 0
	})
}

// countersBy is a counter with a label: values calls emit for each of the label's values.
func countersBy[S any](name, help, label string, values func(s *S, emit func(label string, n int64))) figure[S] {
	return newFigure(prometheus.CounterValue, name, help, []string{label}, func(s *S, emit func(float64, ...string)) {
		values(s, func(label string, n int64) { emit(float64(n), label) })
	})
}

// gaugesBy is a gauge with a label: values calls emit for each of the label's values.
func gaugesBy[S any](name, help, label string, values func(s *S, emit func(label string, v float64))) figure[S] {
	return newFigure(prometheus.GaugeValue, name, help, []string{label}, func(s *S, emit func(float64, ...string)) {
		values(s, func(label string, v float64) { emit(v, label) })
	})
}

// samples takes the values of one scrape.
type samples chan<- prometheus.Metric

// collect sends the values of all metrics in a table.
func collect[S any](to samples, table []figure[S], stats S) {
	for i := range table {
		m := &table[i]
		m.read(&stats, func(value float64, label ...string) {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, label...)
		})
	}
}
