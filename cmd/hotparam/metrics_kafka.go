package main

import (
	"strconv"

	"github.com/hotparam/hotparam/aggregator/kafkasource"
)

var kafkaDecoderMetrics = decoderMetrics("kafka", "records")

// kafkaMetrics are of the source.
var kafkaMetrics = []figure[kafkasource.Stats]{
	counterOf("kafka_plain_records_total", "Records of programs that send lines alone, without headers.",
		func(k *kafkasource.Stats) int64 { return k.NoHeaders }),
	counterOf("kafka_mismatched_records_total", "Records of senders that know of another number of partitions.",
		func(k *kafkasource.Stats) int64 { return k.Mismatched }),
	counterOf("kafka_truncations_total", "DATA LOSS: times that brokers lost records which they had taken.",
		func(k *kafkasource.Stats) int64 { return k.Truncated }),
	counterOf("kafka_fetch_errors_total", "Fetches that failed.",
		func(k *kafkasource.Stats) int64 { return k.FetchErrors }),
	counterOf("kafka_commit_errors_total", "Tries to tell the group how far we are that failed.",
		func(k *kafkasource.Stats) int64 { return k.CommitErrors }),
	counterOf("kafka_pauses_total", "Times that a partition was not read on, as counting was behind.",
		func(k *kafkasource.Stats) int64 { return k.Pauses }),
	counterOf("kafka_abandoned_clients_total", "Clients of those that did not end in time.",
		func(k *kafkasource.Stats) int64 { return k.Abandoned }),
	gaugeOf("kafka_partitions", "Partitions that this daemon has.",
		func(k *kafkasource.Stats) float64 { return float64(len(k.Partitions)) }),
	counterOf("kafka_rebalances_total", "Times that the group gave out partitions.",
		func(k *kafkasource.Stats) int64 { return k.Rebalances }),
	counterOf("kafka_assigned_partitions_total", "Partitions that came from the group.",
		func(k *kafkasource.Stats) int64 { return k.Assigned }),
	counterOf("kafka_revoked_partitions_total", "Partitions that went to another daemon in good order.",
		func(k *kafkasource.Stats) int64 { return k.Revoked }),
	counterOf("kafka_taken_partitions_total", "Partitions that went as the group did not hear of this daemon.",
		func(k *kafkasource.Stats) int64 { return k.Lost }),
	counterOf("kafka_resizes_total", "Times that the topic got more partitions.",
		func(k *kafkasource.Stats) int64 { return k.Resizes }),
	counterOf("kafka_adopt_failures_total", "Tries to take a partition's hot keys over that failed.",
		func(k *kafkasource.Stats) int64 { return k.AdoptFailures }),
	countersBy("kafka_rejected_records_total", "DATA LOSS: records that were not counted, by reason.", "reason",
		func(k *kafkasource.Stats, emit func(string, int64)) {
			emit("bad_headers", k.BadHeaders)
			emit("namespace", k.Foreign)
		}),
	countersBy("kafka_replaced_clients_total", "Clients that were replaced as they were stuck, by reason.", "reason",
		func(k *kafkasource.Stats, emit func(string, int64)) {
			emit("throttled", k.Replaced.Throttled)
			emit("fetch", k.Replaced.Fetch)
			emit("ends", k.Replaced.Ends)
			emit("group", k.Replaced.Group)
		}),
	gaugeOf("kafka_uncovered_partitions", "Partitions of which not all is read that was there when they came.",
		partitionsThat(func(p *kafkasource.PartitionStats) bool { return !p.Covered })),
	gaugeOf("kafka_frozen_partitions", "Partitions whose time stands still, as their brokers do not answer.",
		partitionsThat(func(p *kafkasource.PartitionStats) bool { return p.Frozen })),
}

// partitionsThat returns how many partitions of a source is reports true for.
func partitionsThat(is func(*kafkasource.PartitionStats) bool) func(*kafkasource.Stats) float64 {
	return func(k *kafkasource.Stats) (n float64) {
		for i := range k.Partitions {
			if is(&k.Partitions[i]) {
				n++
			}
		}
		return n
	}
}

// partitionMetrics are of each partition of the source.
var partitionMetrics = []figure[kafkasource.PartitionStats]{
	gaugesBy("kafka_lag_records", "Records of a partition that are still to be read.", "partition",
		func(p *kafkasource.PartitionStats, emit func(string, float64)) {
			if p.Records >= 0 { // it is known
				emit(partitionName(p), float64(p.Records))
			}
		}),
	gaugesBy("kafka_delay_seconds", "Age of the newest counts of a partition that were read.", "partition",
		func(p *kafkasource.PartitionStats, emit func(string, float64)) {
			emit(partitionName(p), p.Delay.Seconds())
		}),
	gaugesBy("kafka_behind_seconds", "Age of the time up to which all counts of a partition have come.", "partition",
		func(p *kafkasource.PartitionStats, emit func(string, float64)) {
			emit(partitionName(p), p.Behind.Seconds())
		}),
}

func partitionName(p *kafkasource.PartitionStats) string { return strconv.Itoa(int(p.Partition)) }
