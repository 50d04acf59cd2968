package daemon

import (
	"strconv"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/kafkasource"
)

var kafkaDecoderMetrics = kafkaMeanings(decoderMetrics("kafka", "records"))

// kafkaMeanings sets the text for METRICS.md of each metric: its difference from the StatsD
// metric, or a reference to that metric if there is none.
func kafkaMeanings(table []figure.Figure[decode.Stats]) []figure.Figure[decode.Stats] {
	for i := range table {
		f := &table[i]
		statsd := statsdDecoderMetrics[i]
		switch meaning := kafkaExplained[f.Name]; {
		case meaning != "":
			f.Meaning = meaning
		case statsd.Meaning != "":
			f.Meaning = "as `" + statsd.Name + "`"
		}
	}
	return table
}

// kafkaExplained holds the meanings of the decoder's metrics that differ from those of StatsD.
var kafkaExplained = map[string]string{
	"hotparam_kafka_records_total": "records that were read, including repeated reads after a rebalance",
	"hotparam_kafka_lines_total":   "lines in them",
	"hotparam_kafka_counts_total":  "lines that were counts of a rule's key",
	"hotparam_kafka_counted_total": "sum of the counts",
	"hotparam_kafka_rejected_total": "lines that are not counts: `malformed`, `foreign`, `not_counter`, `negative`, `bad_key`, `no_rule`, " +
		"as with StatsD",
	"hotparam_kafka_lost_records_total": "gaps in the senders' sequences: what a broker lost, or a sender dropped; as " +
		"`hotparam_statsd_lost_packets_total`",
	"hotparam_kafka_recovered_records_total": "records that were taken as lost and arrived late",
	"hotparam_kafka_duplicate_records_total": "duplicate records, counted once",
	"hotparam_kafka_origins_total":           "lines with the routes and callers of hot keys",
	"hotparam_kafka_samples_total":           "counts that came with a rate, and are estimates",
	"hotparam_kafka_uncanonical_total": "counts of other programs whose keys were not canonical: their parts may be in several partitions, " +
		"because [the text of a key decides](docs/PRODUCERS.md#the-record)",
	"hotparam_kafka_refused_records_total": "records, as `hotparam_statsd_refused_packets_total`: `unsigned`, `bad_mac`, `time`, `replayed` " +
		"with `trust: signed`; `counts`, `keys`, `names` over a cap; `unlisted` never",
	"hotparam_kafka_senders": "instances that sent counts in the last minute",
	"hotparam_kafka_late_senders": "instances with all counts over two seconds old on arrival, as `hotparam_statsd_late_senders`; " +
		"without `LogAppendTime` the clock may be slow",
	"hotparam_kafka_off_clocks": "instances whose clocks are wrong by more than a quarter of a second. Their counts are corrected if " +
		"the topic has `LogAppendTime`. `/-/ready` names the worst, and the log names each: run chrony or " +
		"another NTP client there",
	"hotparam_kafka_clock_offset_seconds": "offset of the worst clock; positive if it is behind, negative if it is ahead",
}

// kafkaMetrics are the metrics of the Kafka source.
var kafkaMetrics = []figure.Figure[kafkasource.Stats]{
	figure.Counter("kafka_plain_records_total", "Records without headers, of programs that send lines alone.",
		func(k *kafkasource.Stats) int64 { return k.NoHeaders }),
	figure.Counter("kafka_mismatched_records_total", "Records of senders that use another number of partitions.",
		func(k *kafkasource.Stats) int64 { return k.Mismatched }).
		Explain("records of senders that use another number of partitions, for some seconds after partitions were " +
			"added; meanwhile no key cools"),
	figure.Counter("kafka_truncations_total", "DATA LOSS: times that brokers lost records which they had taken.",
		func(k *kafkasource.Stats) int64 { return k.Truncated }).
		Explain("times that brokers lost records that they had accepted: a leader died before others had them " +
			"(`acks: 1`)"),
	figure.Counter("kafka_fetch_errors_total", "Fetches that failed; they are tried again.",
		func(k *kafkasource.Stats) int64 { return k.FetchErrors }),
	figure.Counter("kafka_commit_errors_total", "Failed commits of the position in the group; only the display of other tools depends on it.",
		func(k *kafkasource.Stats) int64 { return k.CommitErrors }),
	figure.Counter("kafka_pauses_total", "Times that reading a partition paused, because counting was behind.",
		func(k *kafkasource.Stats) int64 { return k.Pauses }),
	figure.Counter("kafka_abandoned_clients_total", "Replaced clients that did not end in time; at most four are awaited at once.",
		func(k *kafkasource.Stats) int64 { return k.Abandoned }),
	figure.Gauge("kafka_partitions", "Partitions of this aggregator.",
		func(k *kafkasource.Stats) float64 { return float64(len(k.Partitions)) }),
	figure.Counter("kafka_rebalances_total", "Rebalances of the group, including those without a change.",
		func(k *kafkasource.Stats) int64 { return k.Rebalances }),
	figure.Counter("kafka_assigned_partitions_total", "Partitions assigned by the group.",
		func(k *kafkasource.Stats) int64 { return k.Assigned }),
	figure.Counter("kafka_revoked_partitions_total", "Partitions handed over to another aggregator in order.",
		func(k *kafkasource.Stats) int64 { return k.Revoked }),
	figure.Counter("kafka_taken_partitions_total", "Partitions lost because the group had no heartbeat of this aggregator for a session.",
		func(k *kafkasource.Stats) int64 { return k.Lost }),
	figure.Counter("kafka_resizes_total", "Times that the topic got more partitions.",
		func(k *kafkasource.Stats) int64 { return k.Resizes }),
	figure.Counter("kafka_adopt_failures_total", "Failed tries to take over a partition's hot keys.",
		func(k *kafkasource.Stats) int64 { return k.AdoptFailures }).
		Explain("failed tries to take a partition's hot keys over from Redis; until one succeeds no key of the " +
			"partition is published"),
	figure.CountersBy("kafka_rejected_records_total", "DATA LOSS: records that were not counted, by reason.", "reason",
		func(k *kafkasource.Stats, emit func(string, int64)) {
			emit("bad_headers", k.BadHeaders)
			emit("namespace", k.Foreign)
		}).
		Explain("records that were not counted: `bad_headers` (no known version of hotparam wrote them); `namespace` " +
			"(of another fleet: give each a topic of its own)"),
	figure.CountersBy("kafka_replaced_clients_total", "Clients that were replaced because they were stuck, by reason.", "reason",
		func(k *kafkasource.Stats, emit func(string, int64)) {
			emit("throttled", k.Replaced.Throttled)
			emit("fetch", k.Replaced.Fetch)
			emit("ends", k.Replaced.Ends)
			emit("group", k.Replaced.Group)
		}).
		Explain("Kafka clients that were replaced because they were stuck while another one got answers: `throttled` " +
			"(a broker asked for a pause longer than the session), `fetch`, `ends`, `group`"),
	figure.Gauge("kafka_uncovered_partitions", "Partitions not yet read up to the end that they had when they were assigned; none of their keys becomes hot or cools.",
		partitionsThat(func(p *kafkasource.PartitionStats) bool { return !p.Covered })),
	figure.Gauge("kafka_frozen_partitions", "Stalled partitions, whose brokers do not answer.",
		partitionsThat(func(p *kafkasource.PartitionStats) bool { return p.Frozen })).
		Explain("partitions that have been stalled for 3 s: their brokers do not answer (then `/-/ready` is 503), or " +
			"an instance is slow, dead or cannot write. Their keys do not cool"),
}

// partitionsThat returns a function that counts the partitions of a source for which is returns
// true.
func partitionsThat(matches func(*kafkasource.PartitionStats) bool) func(*kafkasource.Stats) float64 {
	return func(k *kafkasource.Stats) (n float64) {
		for i := range k.Partitions {
			if matches(&k.Partitions[i]) {
				n++
			}
		}
		return n
	}
}

// partitionMetrics are the metrics of each partition of the source.
var partitionMetrics = []figure.Figure[kafkasource.PartitionStats]{
	figure.GaugesBy("kafka_lag_records", "Records that are still to be read; absent while it is not known.", "partition",
		func(p *kafkasource.PartitionStats, emit func(string, float64)) {
			if p.Records >= 0 { // negative if unknown
				emit(partitionName(p), float64(p.Records))
			}
		}),
	figure.GaugesBy("kafka_delay_seconds", "Age of the newest counts that were read; normally 0.1 to 1.", "partition",
		func(p *kafkasource.PartitionStats, emit func(string, float64)) {
			emit(partitionName(p), p.Delay.Seconds())
		}),
	figure.GaugesBy("kafka_behind_seconds", "Age of the time up to which all counts have arrived; keys cool by these counts only.", "partition",
		func(p *kafkasource.PartitionStats, emit func(string, float64)) {
			emit(partitionName(p), p.Behind.Seconds())
		}),
}

func partitionName(p *kafkasource.PartitionStats) string { return strconv.Itoa(int(p.Partition)) }
