package main

import "github.com/hotparam/hotparam/aggregator/statsdsource"

var statsdDecoderMetrics = decoderMetrics("statsd", "packets")

// statsdMetrics are of our own listener.
var statsdMetrics = []figure[statsdsource.Stats]{
	counterOf("statsd_events_total", "Events and service checks of DogStatsD, which are passed over.",
		func(s *statsdsource.Stats) int64 { return s.Decoder.Events }),
	counterOf("statsd_dropped_packets_total", "DATA LOSS: UDP packets that the system dropped, as the socket's buffer was full.",
		func(s *statsdsource.Stats) int64 { return s.Listener.Dropped }),
	counterOf("statsd_too_long_total", "DATA LOSS: lines and packets over 64 KiB.",
		func(s *statsdsource.Stats) int64 { return s.Listener.TooLong }),
	counterOf("statsd_truncated_total", "DATA LOSS: lines that were cut off by the end of their connection.",
		func(s *statsdsource.Stats) int64 { return s.Listener.Truncated }),
	gaugeOf("statsd_connections", "Connections that are open.",
		func(s *statsdsource.Stats) float64 { return float64(s.Listener.Connections) }),
	counterOf("statsd_accepted_connections_total", "Connections that came.",
		func(s *statsdsource.Stats) int64 { return s.Listener.Accepted }),
	counterOf("statsd_refused_connections_total", "DATA LOSS: connections that found as many open as may be.",
		func(s *statsdsource.Stats) int64 { return s.Listener.Refused }),
	countersBy("statsd_displaced_connections_total", "Connections that were closed to make room, by reason.", "reason",
		func(s *statsdsource.Stats, emit func(string, int64)) {
			emit("unused", s.Listener.Unused)
			emit("silent", s.Listener.Silent)
		}),
	counterOf("statsd_accept_failures_total", "Connections that the system could not give us.",
		func(s *statsdsource.Stats) int64 { return s.Listener.AcceptFailed }),
}
