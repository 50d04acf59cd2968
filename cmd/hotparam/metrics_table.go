package main

import "github.com/prometheus/client_golang/prometheus"

// figure is one metric of the statistics S: its name, its help and how it is read are
// declared together, once. Metrics with labels are collected by code.
type figure[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

func counterOf[S any](name, help string, value func(*S) int64) figure[S] {
	return figure[S]{desc(name, help), prometheus.CounterValue, func(s *S) float64 { return float64(value(s)) }}
}

func gaugeOf[S any](name, help string, value func(*S) float64) figure[S] {
	return figure[S]{desc(name, help), prometheus.GaugeValue, value}
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

// collect sends the figures of all metrics in a table.
func collect[S any](to samples, table []figure[S], stats *S) {
	for i := range table {
		m := &table[i]
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stats))
	}
}
