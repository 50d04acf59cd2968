package main

import (
	"strconv"

	"github.com/hotparam/hotparam/aggregator/kafkasource"
)

var (
	kafkaDescs = newDecoderDescs("kafka", "records")

	kafkaRejectedDesc = desc("kafka_rejected_records_total", "DATA LOSS: records that were not counted, by reason.", "reason")

	kafkaLagDesc       = desc("kafka_lag_records", "Records of a partition that are still to be read.", "partition")
	kafkaDelayDesc     = desc("kafka_delay_seconds", "Age of the newest counts of a partition that were read.", "partition")
	kafkaBehindDesc    = desc("kafka_behind_seconds", "Age of the time up to which all counts of a partition have come.", "partition")
	kafkaUncoveredDesc = desc("kafka_uncovered_partitions", "Partitions of which not all is read that was there when they came.")
	kafkaReplacedDesc  = desc("kafka_replaced_clients_total", "Clients that were replaced as they were stuck, by reason.", "reason")
	kafkaFrozenDesc    = desc("kafka_frozen_partitions", "Partitions whose time stands still, as their brokers do not answer.")
)

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
}

// kafka gives the figures of the source.
func (s samples) kafka(k *kafkasource.Stats) {
	collect(s, kafkaMetrics, k)
	decoder := k.Decoder
	decoder.Packets = k.Records // those that were not decoded, too
	kafkaDescs.collect(s, &decoder)
	s.counter(kafkaRejectedDesc, k.BadHeaders, "bad_headers")
	s.counter(kafkaRejectedDesc, k.Foreign, "namespace")
	s.counter(kafkaReplacedDesc, k.Replaced.Throttled, "throttled")
	s.counter(kafkaReplacedDesc, k.Replaced.Fetch, "fetch")
	s.counter(kafkaReplacedDesc, k.Replaced.Ends, "ends")
	s.counter(kafkaReplacedDesc, k.Replaced.Group, "group")

	uncovered, frozen := 0, 0
	for _, p := range k.Partitions {
		s.partition(&p)
		if !p.Covered {
			uncovered++
		}
		if p.Frozen {
			frozen++
		}
	}
	s.gauge(kafkaUncoveredDesc, float64(uncovered))
	s.gauge(kafkaFrozenDesc, float64(frozen))
}

// partition gives the figures of one partition; what is not known is left out.
func (s samples) partition(p *kafkasource.PartitionStats) {
	name := strconv.Itoa(int(p.Partition))
	if p.Records >= 0 {
		s.gauge(kafkaLagDesc, float64(p.Records), name)
	}
	s.gauge(kafkaDelayDesc, p.Delay.Seconds(), name)
	s.gauge(kafkaBehindDesc, p.Behind.Seconds(), name)
}
