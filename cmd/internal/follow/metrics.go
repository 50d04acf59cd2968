package follow

import (
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/internal/figure"
)

// Collect adds the follower's metrics to s.
func (f *Follower) Collect(s figure.Samples) {
	figure.Collect(s, Figures, f.Stats())
	figure.Collect(s, rulesfile.Figures, f.Rules())
}

// Figures are the metrics of the followed logs.
var Figures = []figure.Figure[Stats]{
	figure.Counter("follow_lines_total", "Lines that were read.",
		func(s *Stats) int64 { return s.Lines }),
	figure.Counter("follow_requests_total", "Requests that were counted.",
		func(s *Stats) int64 { return s.Requests }),
	figure.CountersBy("follow_skipped_lines_total", "DATA LOSS: lines that were not counted, by reason.", "reason",
		func(s *Stats, emit func(string, int64)) {
			emit("unreadable", s.Bad-s.TooLong)
			emit("too_long", s.TooLong)
			emit("old", s.Old)
		}).
		Explain("lines that were not counted: `unreadable` (not in the log's format; the log shows examples), " +
			"`too_long` (over 1 MiB), `old` (over two seconds after their windows: check the server's buffering " +
			"and the clocks)"),
	figure.Counter("follow_future_requests_total", "Requests with a time in the future, which were counted as of now.",
		func(s *Stats) int64 { return s.Future }).
		Explain("requests with a time in the future, which were counted as of now: a clock is wrong, or a log leaves out its time zone"),
	figure.CountersBy("follow_dropped_counts_total", "DATA LOSS: counts that could not be sent, by reason.", "reason",
		func(s *Stats, emit func(string, int64)) {
			for reason, n := range s.Dropped {
				emit(reason, n)
			}
		}).
		Explain("counts that could not be sent: `table_full`, `too_long`, `send_error`, and by Kafka `buffer_full`, " +
			"`delivery`, `not_connected` and `no_rule`, as of `hotparam_app_dropped_counts_total`"),
	figure.Gauge("follow_behind_bytes", "Bytes of the logs that are written and not read.",
		func(s *Stats) float64 { return float64(s.Behind) }).
		Explain("bytes of the logs that are written and not read yet: normally about 0. While it grows, lines come faster than they are read"),
	figure.Gauge("follow_logs", "Logs that are followed.",
		func(s *Stats) float64 { return float64(s.Logs) }),
	figure.Gauge("follow_missing_logs", "Logs that are not there, or cannot be read.",
		func(s *Stats) float64 { return float64(s.Missing) }).
		Explain("of these, logs that are not there, or cannot be read: the log says which"),
	figure.Gauge("follow_files", "Open files of the logs.",
		func(s *Stats) float64 { return float64(s.Files) }).
		Explain("open files of the logs: more than logs for some seconds after a rotation"),
	figure.CountersBy("follow_rotations_total", "Times that a log was rotated, by how.", "how",
		func(s *Stats, emit func(string, int64)) {
			emit("rename", s.Rotated)
			emit("truncate", s.Truncated)
		}),
	figure.Counter("follow_read_failures_total", "Reads of logs that failed; they are tried again.",
		func(s *Stats) int64 { return s.Failed }),
}
