package main

import "github.com/hotparam/hotparam/aggregator/graphitesource"

var (
	graphitePollsDesc    = desc("graphite_polls_total", "Times that Graphite was asked.")
	graphiteFailuresDesc = desc("graphite_failures_total", "Times that Graphite gave no answer that counts, by reason.", "reason")
	graphiteSkippedDesc  = desc("graphite_skipped_total", "Times that the job was due while it still ran.")
	graphitePanicsDesc   = desc("graphite_panics_total", "Times that the job panicked and went on.")
	graphiteTookDesc     = desc("graphite_poll_seconds", "How long the newest answer took.")

	graphiteSeriesDesc   = desc("graphite_series", "Series in the newest answer.")
	graphitePointsDesc   = desc("graphite_points_total", "Points with a value that were read, each as often as it came.")
	graphiteCountedDesc  = desc("graphite_counted_total", "What was counted.")
	graphiteRevisedDesc  = desc("graphite_revised_points_total", "Points that became more after they had been counted; the rest was counted, too.")
	graphiteShrunkDesc   = desc("graphite_shrunk_points_total", "DATA LOSS: points that became less after they had been counted; nothing is taken back.")
	graphiteRejectedDesc = desc("graphite_rejected_total", "DATA LOSS: points or series that were not counted, by reason.", "reason")
	graphiteWrittenDesc  = desc("graphite_uncanonical_total", "Series whose keys were not canonical, and were made so.")
	graphiteMissedDesc   = desc("graphite_missed_seconds_total", "DATA LOSS: seconds of which nothing is known.")

	graphiteBehindDesc = desc("graphite_behind_seconds", "Age of the time up to which all counts are known.")
	graphiteFrozenDesc = desc("graphite_frozen", "1 if that time stands still.")
)

// graphite gives the figures of the source.
func (s samples) graphite(g *graphitesource.Stats) {
	s.counter(graphitePollsDesc, g.Polls)
	for reason, n := range g.Failures {
		s.counter(graphiteFailuresDesc, n, reason)
	}
	s.counter(graphiteSkippedDesc, g.Skipped)
	s.counter(graphitePanicsDesc, g.Panics)
	s.gauge(graphiteTookDesc, g.LastDuration.Seconds())

	s.gauge(graphiteSeriesDesc, float64(g.Series))
	s.counter(graphitePointsDesc, g.Points)
	s.counter(graphiteCountedDesc, g.Counted)
	s.counter(graphiteRevisedDesc, g.Revised)
	s.counter(graphiteShrunkDesc, g.Shrunk)
	s.counter(graphiteRejectedDesc, g.BadValue, "bad_value")
	s.counter(graphiteRejectedDesc, g.BadKey, "bad_key")
	s.counter(graphiteRejectedDesc, g.Foreign, "foreign")
	s.counter(graphiteWrittenDesc, g.Uncanonical)
	s.counter(graphiteMissedDesc, g.MissedSeconds)

	s.gauge(graphiteBehindDesc, g.Behind.Seconds())
	s.flag(graphiteFrozenDesc, g.Frozen)
}
