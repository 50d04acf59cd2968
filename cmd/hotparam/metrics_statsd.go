package main

import (
	"github.com/hotparam/hotparam/aggregator/statsdsource"
)

var (
	statsdDescs = newDecoderDescs("statsd", "packets")

	statsdEventsDesc    = desc("statsd_events_total", "Events and service checks of DogStatsD, which are passed over.")
	statsdDroppedDesc   = desc("statsd_dropped_packets_total", "DATA LOSS: UDP packets that the system dropped, as the socket's buffer was full.")
	statsdTooLongDesc   = desc("statsd_too_long_total", "DATA LOSS: lines and packets over 64 KiB.")
	statsdTruncatedDesc = desc("statsd_truncated_total", "DATA LOSS: lines that were cut off by the end of their connection.")

	statsdConnectionsDesc = desc("statsd_connections", "Connections that are open.")
	statsdAcceptedDesc    = desc("statsd_accepted_connections_total", "Connections that came.")
	statsdRefusedDesc     = desc("statsd_refused_connections_total", "DATA LOSS: connections that found as many open as may be.")
	statsdDisplacedDesc   = desc("statsd_displaced_connections_total", "Connections that were closed to make room, by reason.", "reason")
	statsdAcceptDesc      = desc("statsd_accept_failures_total", "Connections that the system could not give us.")
)

// statsd gives the figures of our own listener.
func (s samples) statsd(a *statsdsource.Stats) {
	statsdDescs.collect(s, &a.Decoder)
	s.counter(statsdEventsDesc, a.Decoder.Events)
	l := &a.Listener
	s.counter(statsdDroppedDesc, l.Dropped)
	s.counter(statsdTooLongDesc, l.TooLong)
	s.counter(statsdTruncatedDesc, l.Truncated)
	s.gauge(statsdConnectionsDesc, float64(l.Connections))
	s.counter(statsdAcceptedDesc, l.Accepted)
	s.counter(statsdRefusedDesc, l.Refused)
	s.counter(statsdDisplacedDesc, l.Unused, "unused")
	s.counter(statsdDisplacedDesc, l.Silent, "silent")
	s.counter(statsdAcceptDesc, l.AcceptFailed)
}
