package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

// A hot parameter over Kafka, from the first request to the last, is handled as over StatsD, and
// each partition has its own part of the set.
func TestHotParameterOverKafka(t *testing.T) {
	t.Parallel()
	_ = quickCommands(t) // it may skip
	kafka := real.Kafka(t, real.KafkaConfig{Properties: quickKafka})
	f := newKafkaFleet(t, kafka, testenv.Redis(t).URL(), "1", searchRule)
	f.owner = fmt.Sprintf("kafka-%d", wire.Partition([]byte("GET%20/search?q=phone"), partitions))
	daemon := f.startAggregator("agg-0")
	apis := f.startAPIs(3)
	within(t, patience, "the aggregator ready", daemon.ready)
	f.checkStory(apis)
	owners := f.client.HGetAll(t.Context(), f.layout.Owners).Val()
	for p := range partitions {
		if owner := fmt.Sprintf("kafka-%d", p); owners[owner] != "1" {
			t.Errorf("owners: %v, want %s at epoch 1", owners, owner)
		}
	}
}

// Kafka is unavailable for half a minute. Requests are unaffected, the buffer is bounded, dropped
// counts are reported, and everything works soon after Kafka's return.
func TestKafkaAway(t *testing.T) {
	t.Parallel()
	_ = quickCommands(t) // it may skip
	kafka := real.Kafka(t, real.KafkaConfig{Properties: quickKafka})
	f := newKafkaFleet(t, kafka, testenv.Redis(t).URL(), "1", crowdRule)
	f.buffer = "1MiB"                 // soon full
	f.variables = []string{"GOGC=20"} // else memory grows and shrinks by all that is in use
	aggregators := f.startAggregators("agg-0", "agg-1")
	s := f.beginStory(f.startAPIs(3))
	var before int64 // without what a process takes to warm up
	s.runFault(fault{
		name: "Kafka is away", begin: func() { kafka.Pause(0) },
		mendable: func() {
			for second := range 30 {
				time.Sleep(time.Second)
				if second == 5 {
					before, _ = s.apis[0].Memory()
				}
				if in := s.apis[0].state(); in.Sink.Buffered > 1<<20 {
					t.Errorf("%d bytes wait for Kafka, want at most %d", in.Sink.Buffered, 1<<20)
				}
			}
			kafka.Resume(0)
			f.awaitGroup(len(aggregators))
		},
		pass: 8 * time.Second,
	})
	after, _ := s.apis[0].Memory()
	t.Logf("resident memory of an instance: %d KB before, %d KB after", before>>10, after>>10)
	if after > before+6<<20 {
		t.Errorf("resident memory: %d KB before, %d KB after, want at most 6 MB more", before>>10, after>>10)
	}
	s.endAndJudge()
	if accounted := f.account(s, aggregators); accounted == 0 {
		t.Error("nothing was told as dropped")
	}
}
