package daemon

import (
	"github.com/hotparam/hotparam/cmd/internal/graphitesource"
	"github.com/hotparam/hotparam/internal/figure"
)

// graphiteMetrics are the metrics of the Graphite source.
var graphiteMetrics = []figure.Figure[graphitesource.Stats]{
	figure.Counter("graphite_polls_total", "Times that Graphite was asked.",
		func(g *graphitesource.Stats) int64 { return g.Polls }),
	figure.Counter("graphite_skipped_total", "Times that the job was due while it still ran; the next run makes up for it.",
		func(g *graphitesource.Stats) int64 { return g.Skipped }),
	figure.Counter("graphite_panics_total", "Times that the job panicked and continued: please report it.",
		func(g *graphitesource.Stats) int64 { return g.Panics }),
	figure.Gauge("graphite_poll_seconds", "How long the newest answer took.",
		func(g *graphitesource.Stats) float64 { return g.LastDuration.Seconds() }).
		Explain("how long the newest answer took; normally well below `graphite.every`"),
	figure.Gauge("graphite_series", "Series in the newest answer: keys that may be hot, since Graphite leaves out the others.",
		func(g *graphitesource.Stats) float64 { return float64(g.Series) }),
	figure.Counter("graphite_points_total", "Points with a value that were read, each as often as it came: those of the last ten seconds are read again.",
		func(g *graphitesource.Stats) int64 { return g.Points }),
	figure.Counter("graphite_counted_total", "Sum of the counts read, each once.",
		func(g *graphitesource.Stats) int64 { return g.Counted }),
	figure.Counter("graphite_revised_points_total", "Points that grew after they had been counted, because counts came late; the difference was counted, too.",
		func(g *graphitesource.Stats) int64 { return g.Revised }),
	figure.Counter("graphite_shrunk_points_total", "DATA LOSS: points that shrank after they had been counted; nothing is subtracted. Check whether two StatsDs write the same series.",
		func(g *graphitesource.Stats) int64 { return g.Shrunk }),
	figure.Counter("graphite_uncanonical_total", "Series whose keys were not canonical: each is asked for alone, and counted in canonical form.",
		func(g *graphitesource.Stats) int64 { return g.Uncanonical }),
	figure.Counter("graphite_missed_seconds_total", "DATA LOSS: seconds whose counts are not known.",
		func(g *graphitesource.Stats) int64 { return g.MissedSeconds }).
		Explain("seconds whose counts are not known: Graphite was silent for longer than it keeps points, or for longer " +
			"than one answer covers. Until the window has passed them, high counts are unknown and no key cools"),
	figure.Gauge("graphite_behind_seconds", "Age of the time up to which all counts are known.",
		func(g *graphitesource.Stats) float64 { return g.Behind.Seconds() }).
		Explain("age of the time up to which all counts are known; normally below 3, with `graphite.step: 1s`"),
	figure.Flag("graphite_frozen", "1 if the time up to which counts are known does not advance.",
		func(g *graphitesource.Stats) bool { return g.Frozen }).
		Explain("1 if the time up to which counts are known does not advance, because Graphite gives no usable answer, " +
			"or no new points; no key becomes hot or cools"),
	figure.CountersBy("graphite_failures_total", "Polls of Graphite without a usable answer, by reason.", "reason",
		func(g *graphitesource.Stats, emit func(string, int64)) {
			for reason, n := range g.Failures {
				emit(reason, n)
			}
		}).
		Explain("polls without a usable answer; nothing is counted until the next good one: `timeout`; `connect`; " +
			"`auth` (401, 403); `status` (any other); `malformed` (not Graphite's format: is the URL right?); " +
			"`too_large`; `step` (the distance of its points is not `graphite.step`: check its retentions); " +
			"`silent` (it answers without new points for 5 s: StatsD or carbon is down)"),
	figure.CountersBy("graphite_rejected_total", "DATA LOSS: points or series that were not counted, by reason.", "reason",
		func(g *graphitesource.Stats, emit func(string, int64)) {
			emit("bad_value", g.BadValue)
			emit("bad_key", g.BadKey)
			emit("foreign", g.Foreign)
		}).
		Explain("points and series that were not counted: `bad_value` (a point that is not a count); `bad_key` (a " +
			"series with a key that strict encoding never writes); `foreign` (a series of no rule)"),
}
