package daemon

import (
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/statsdsource"
)

var statsdDecoderMetrics = decoderMetrics("statsd", "packets")

// statsdMetrics are the metrics of the built-in StatsD listener.
var statsdMetrics = []figure.Figure[statsdsource.Stats]{
	figure.Counter("statsd_events_total", "Events and service checks of DogStatsD, which are ignored.",
		func(s *statsdsource.Stats) int64 { return s.Decoder.Events }),
	figure.Counter("statsd_dropped_packets_total", "DATA LOSS: UDP packets that the system dropped because the socket's buffer was full.",
		func(s *statsdsource.Stats) int64 { return s.Listener.Dropped }).
		Explain("UDP packets that the system dropped because the socket's buffer was full (Linux): raise " +
			"`aggregator.readers` or `net.core.rmem_max`"),
	figure.Counter("statsd_too_long_total", "DATA LOSS: lines and packets over 64 KiB.",
		func(s *statsdsource.Stats) int64 { return s.Listener.TooLong }).
		Explain("lines and packets over 64 KiB. The other lines of a connection are counted, and the lines within " +
			"the first 64 KiB of a packet"),
	figure.Counter("statsd_truncated_total", "DATA LOSS: lines that the end of their connection cut off.",
		func(s *statsdsource.Stats) int64 { return s.Listener.Truncated }),
	figure.Gauge("statsd_connections", "Connections by TCP and Unix sockets that are open.",
		func(s *statsdsource.Stats) float64 { return float64(s.Listener.Connections) }),
	figure.Counter("statsd_accepted_connections_total", "Connections that were accepted, in all.",
		func(s *statsdsource.Stats) int64 { return s.Listener.Accepted }),
	figure.Counter("statsd_refused_connections_total", "DATA LOSS: connections that were refused because too many were open.",
		func(s *statsdsource.Stats) int64 { return s.Listener.Refused }).
		Explain("connections that were closed at once, because 1,024 connections (or half of the file limit) had sent " +
			"lines within 15 s, and no other peer had at least two more of them than this one"),
	figure.CountersBy("statsd_displaced_connections_total", "Connections that were closed to make room, by reason.", "reason",
		func(s *statsdsource.Stats, emit func(string, int64)) {
			emit("unused", s.Listener.Unused)
			emit("silent", s.Listener.Silent)
			emit("crowded", s.Listener.Crowded)
		}).
		Explain("connections that were closed to make room: `unused` (no valid line yet; closed first, beginning " +
			"with the peer with most), `silent` (no line for over 15 s), `crowded` (of the peer with most, for a " +
			"peer with fewer). Clients reconnect"),
	figure.Counter("statsd_accept_failures_total", "Connections that could not be accepted, because file descriptors ran out; accepting is retried.",
		func(s *statsdsource.Stats) int64 { return s.Listener.AcceptFailed }),
	figure.Counter("statsd_snapshots_total", "Snapshots that were saved for the aggregator after this one.",
		func(s *statsdsource.Stats) int64 { return s.Snapshot.Saved }).
		Explain("snapshots saved for the next aggregator, each second by the publishing one"),
	figure.Counter("statsd_snapshots_failed_total", "Snapshots that could not be saved.",
		func(s *statsdsource.Stats) int64 { return s.Snapshot.Failed }).
		Explain("snapshots that could not be saved: Redis, the right to `hotparam:{shop}:snapshot:*`, or room for `aggregator.snapshot_file` was missing"),
	figure.Counter("statsd_snapshots_refused_total", "Snapshots that this process could not continue from; the log says why.",
		func(s *statsdsource.Stats) int64 { return s.Snapshot.Refused }),
	figure.Counter("statsd_snapshot_dropped_keys_total", "Keys near a threshold that had no room in snapshots.",
		func(s *statsdsource.Stats) int64 { return s.Snapshot.Dropped }),
	figure.Gauge("statsd_snapshot_bytes", "Size in bytes of the newest snapshot.",
		func(s *statsdsource.Stats) float64 { return float64(s.Snapshot.Size) }),
}
