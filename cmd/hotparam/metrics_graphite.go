package main

import "github.com/hotparam/hotparam/aggregator/graphitesource"

// graphiteMetrics are of the source.
var graphiteMetrics = []figure[graphitesource.Stats]{
	counterOf("graphite_polls_total", "Times that Graphite was asked.",
		func(g *graphitesource.Stats) int64 { return g.Polls }),
	counterOf("graphite_skipped_total", "Times that the job was due while it still ran.",
		func(g *graphitesource.Stats) int64 { return g.Skipped }),
	counterOf("graphite_panics_total", "Times that the job panicked and went on.",
		func(g *graphitesource.Stats) int64 { return g.Panics }),
	gaugeOf("graphite_poll_seconds", "How long the newest answer took.",
		func(g *graphitesource.Stats) float64 { return g.LastDuration.Seconds() }),
	gaugeOf("graphite_series", "Series in the newest answer.",
		func(g *graphitesource.Stats) float64 { return float64(g.Series) }),
	counterOf("graphite_points_total", "Points with a value that were read, each as often as it came.",
		func(g *graphitesource.Stats) int64 { return g.Points }),
	counterOf("graphite_counted_total", "What was counted.",
		func(g *graphitesource.Stats) int64 { return g.Counted }),
	counterOf("graphite_revised_points_total", "Points that became more after they had been counted; the rest was counted, too.",
		func(g *graphitesource.Stats) int64 { return g.Revised }),
	counterOf("graphite_shrunk_points_total", "DATA LOSS: points that became less after they had been counted; nothing is taken back.",
		func(g *graphitesource.Stats) int64 { return g.Shrunk }),
	counterOf("graphite_uncanonical_total", "Series whose keys were not canonical, and were made so.",
		func(g *graphitesource.Stats) int64 { return g.Uncanonical }),
	counterOf("graphite_missed_seconds_total", "DATA LOSS: seconds of which nothing is known.",
		func(g *graphitesource.Stats) int64 { return g.MissedSeconds }),
	gaugeOf("graphite_behind_seconds", "Age of the time up to which all counts are known.",
		func(g *graphitesource.Stats) float64 { return g.Behind.Seconds() }),
	flagOf("graphite_frozen", "1 if that time stands still.",
		func(g *graphitesource.Stats) bool { return g.Frozen }),
	countersBy("graphite_failures_total", "Times that Graphite gave no answer that counts, by reason.", "reason",
		func(g *graphitesource.Stats, emit func(string, int64)) {
			for reason, n := range g.Failures {
				emit(reason, n)
			}
		}),
	countersBy("graphite_rejected_total", "DATA LOSS: points or series that were not counted, by reason.", "reason",
		func(g *graphitesource.Stats, emit func(string, int64)) {
			emit("bad_value", g.BadValue)
			emit("bad_key", g.BadKey)
			emit("foreign", g.Foreign)
		}),
}
