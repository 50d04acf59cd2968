package main

import (
	"github.com/prometheus/client_golang/prometheus"

	logfollow "github.com/hotparam/hotparam/internal/follow"
	"github.com/hotparam/hotparam/internal/httpserve"
)

// followMetrics are a follower's.
type followMetrics struct {
	follower *logfollow.Follower
	server   *httpserve.Server
}

// Describe implements prometheus.Collector.
func (m *followMetrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m *followMetrics) Collect(ch chan<- prometheus.Metric) {
	collect(ch, followerMetrics, m.follower.Stats())
	collect(ch, rulesMetrics, rulesStats(m.follower.Rules()))
	collect(ch, httpMetrics, m.server.Stats())
	collect(ch, buildMetrics, readVersion())
}

// followerMetrics are of the logs that are followed.
var followerMetrics = []figure[logfollow.Stats]{
	counterOf("follow_lines_total", "Lines that were read.",
		func(s *logfollow.Stats) int64 { return s.Lines }),
	counterOf("follow_requests_total", "Requests that were counted.",
		func(s *logfollow.Stats) int64 { return s.Requests }),
	countersBy("follow_skipped_lines_total", "DATA LOSS: lines that were not counted, by reason.", "reason",
		func(s *logfollow.Stats, emit func(string, int64)) {
			emit("unreadable", s.Bad-s.TooLong)
			emit("too_long", s.TooLong)
			emit("old", s.Old)
		}).
		explain("lines that were not counted: `unreadable` (no requests in the log's format; the log has some of them), " +
			"`too_long` (over 1 MiB), `old` (written more than two seconds after their windows: does the server hold lines " +
			"back, or is a clock wrong?)"),
	counterOf("follow_future_requests_total", "Requests with a time to come, which were counted as of now.",
		func(s *logfollow.Stats) int64 { return s.Future }).
		explain("requests with a time to come, which were counted as of now: a clock is wrong, or the time zone that a log leaves out"),
	countersBy("follow_dropped_counts_total", "DATA LOSS: counts that could not be sent, by reason.", "reason",
		func(s *logfollow.Stats, emit func(string, int64)) {
			for reason, n := range s.Dropped {
				emit(reason, n)
			}
		}).
		explain("counts that could not be sent: `table_full`, `too_long`, `send_error`, and by Kafka `buffer_full`, " +
			"`delivery`, `not_connected` and `no_rule`, as of `hotparam_app_dropped_counts_total`"),
	gaugeOf("follow_behind_bytes", "Bytes of the logs that are written and not read.",
		func(s *logfollow.Stats) float64 { return float64(s.Behind) }).
		explain("bytes of the logs that are written and not read yet: about 0 in good times. While it grows, lines come faster than they are read"),
	gaugeOf("follow_logs", "Logs that are followed.",
		func(s *logfollow.Stats) float64 { return float64(s.Logs) }),
	gaugeOf("follow_missing_logs", "Logs that are not there, or cannot be read.",
		func(s *logfollow.Stats) float64 { return float64(s.Missing) }).
		explain("of these, logs that are not there, or cannot be read: the log says which"),
	gaugeOf("follow_files", "Open files of the logs.",
		func(s *logfollow.Stats) float64 { return float64(s.Files) }).
		explain("open files of the logs: more than logs for some seconds after a rotation"),
	countersBy("follow_rotations_total", "Times that a log was rotated, by how.", "how",
		func(s *logfollow.Stats, emit func(string, int64)) {
			emit("rename", s.Rotated)
			emit("truncate", s.Truncated)
		}),
	counterOf("follow_read_failures_total", "Reads of logs that failed; they are tried again.",
		func(s *logfollow.Stats) int64 { return s.Failed }),
}
