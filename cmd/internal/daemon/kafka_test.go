package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/rules"
)

// A partition that is not read makes a daemon not ready. A partition that an instance delays does
// not.
func TestKafkaReady(t *testing.T) {
	at := func(partition int32, frozen, unread bool) kafkasource.PartitionStats {
		return kafkasource.PartitionStats{Partition: partition, Adopted: true, Frozen: frozen, Unread: unread}
	}
	for _, test := range []struct {
		partitions []kafkasource.PartitionStats
		want       string
	}{
		{[]kafkasource.PartitionStats{at(0, false, false), at(1, false, false)}, "ready: 2 partitions"},
		{[]kafkasource.PartitionStats{at(0, true, false), at(1, false, false)}, "ready: 2 partitions; no key cools in 1 of them, because an instance is slow, dead or cannot write: 0"},
		{[]kafkasource.PartitionStats{at(0, true, false), at(1, true, true)}, "1 of 2 partitions are stalled, because their brokers do not answer: 1"},
		{nil, "standby: other aggregators have all partitions; this one gets some when one of them ends"},
	} {
		got, err := kafkaReady(&kafkasource.Stats{Counters: kafkasource.Counters[int64]{Rebalances: 1}, Partitions: test.partitions}, &hotkeys.PublisherStats{Connected: true})
		if err != nil {
			got = err.Error()
		}
		if got != test.want || (err != nil) != strings.Contains(test.want, "brokers") {
			t.Errorf("%+v:\ngot  %s, %v\nwant %s", test.partitions, got, err, test.want)
		}
	}
}

// The entries of a publisher outlast the session of its aggregator.
func TestPartitionConfig(t *testing.T) {
	for session, want := range map[time.Duration][2]time.Duration{
		0:                       {15 * time.Second, 15 * time.Second},
		1500 * time.Millisecond: {15 * time.Second, 10 * time.Second},
		time.Minute:             {65 * time.Second, 65 * time.Second},
	} {
		c := partitionConfig(&rules.Rules{Namespace: "shop"}, session, slog.Default(), nil)
		if got := [2]time.Duration{c.EntryTTL, c.BeatTTL}; got != want {
			t.Errorf("session %v: %v, want %v", session, got, want)
		}
	}
}
