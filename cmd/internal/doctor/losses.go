package doctor

import (
	"fmt"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
)

// Fixes for losses. They name the metrics that have the reasons.
const (
	mendInstanceDrops = "hotparam_app_dropped_counts_total has the reason: for table_full make keys more general; for send_error check that the aggregator can be reached; for buffer_full and not_connected check that the brokers keep up"
	mendDrops         = "its metrics have the reason: hotparam_late_counts_total (delayed by more than two seconds), hotparam_unnamed_counts_total (raise aggregator.memory)" +
		"; StatsD: hotparam_statsd_dropped_packets_total (raise net.core.rmem_max and aggregator.readers), hotparam_statsd_refused_packets_total (senders that are not believed)" +
		"; Kafka: hotparam_kafka_refused_records_total; Graphite: hotparam_graphite_rejected_total"
	mendLost = "if its hotparam_statsd_dropped_packets_total grows, raise net.core.rmem_max and aggregator.readers there; else the network loses them: send by tcp:// or Kafka. Bounds stay right, and get wider"
)

// losses checks for counts and packets that members dropped, and for packets lost on the way to an
// aggregator.
func (x *examination) losses(members []published.Member) {
	bad := 0
	for i := range members {
		m := &members[i]
		if m.Dropped > 0 {
			bad++
			if m.Role == published.RoleInstance {
				x.add("losses", Problem, fmt.Sprintf("instance %s dropped %s in the last minute", m.Name, hotwords.Plural(int(m.Dropped), "count")), mendInstanceDrops)
			} else {
				x.add("losses", Problem, fmt.Sprintf("aggregator %s dropped %s or packets in the last minute", m.Name, hotwords.Plural(int(m.Dropped), "count")), mendDrops)
			}
		}
		if m.Lost > 0 {
			bad++
			status := Problem
			if float64(m.Lost) <= maxLost*float64(m.Lost+m.Arrived) {
				status = Warning
			}
			x.add("losses", status, fmt.Sprintf("of %s to aggregator %s in the last minute, %d were lost", hotwords.Plural(int(m.Lost+m.Arrived), "packet"), m.Name, m.Lost), mendLost)
		}
	}
	if bad == 0 {
		x.add("losses", OK, "no counts were lost in the last minute", "")
	}
}
