package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// quickKafka are the properties with which brokers soon notice the death of a broker or a group
// member. Heartbeats must be much more frequent than the session is long, and a fetch of the
// controllers' log alone waits half a second.
var quickKafka = map[string]string{
	"group.min.session.timeout.ms":       "1000",
	"broker.session.timeout.ms":          "2000",
	"broker.heartbeat.interval.ms":       "500",
	"controller.quorum.fetch.timeout.ms": "1000",
	"replica.fetch.backoff.ms":           "100",
}

// During any fault hot keys stay hot, and changes are right again within recovery. Nothing is
// counted twice, and losses are reported. The test does not run in parallel with others: three
// brokers keep a machine busy. All faults, on six instances, take minutes: see [atLength].
func TestKafkaFaults(t *testing.T) {
	_ = quickCommands(t) // it may skip
	kafka := real.Kafka(t, real.KafkaConfig{Brokers: 3, Properties: quickKafka})
	if !atLength() {
		f := newKafkaFleet(t, kafka, testenv.Redis(t).URL(), "all", crowdRule)
		aggregators := f.startAggregators("agg-0", "agg-1")
		s := f.beginStory(f.startAPIs(3))
		broker := (f.controller() + 1) % 3
		s.runFault(fault{
			name: "a broker is killed", begin: func() { kafka.Kill(broker) },
			mendable: func() { f.awaitLeaders(broker) }, pass: 4 * time.Second,
		})
		f.pauseAndGoOn(s, aggregators[1], 6*time.Second)
		f.countOnce(s, aggregators)
		s.endAndJudge()
		f.account(s, aggregators)
		return
	}
	t.Run("acks=all", func(t *testing.T) {
		redis := testenv.RedisSentinel(t)
		f := newKafkaFleet(t, kafka, redis.URL(), "all", crowdRule)
		aggregators := f.startAggregators("agg-0", "agg-1", "agg-2")
		s := f.beginStory(f.startAPIs(6))
		broker := (f.controller() + 1) % 3
		s.runFault(fault{
			name: "a broker is killed", begin: func() { kafka.Kill(broker) },
			mendable: func() { f.awaitLeaders(broker) }, pass: 4 * time.Second,
		})
		s.runFault(fault{name: "it returns", mendable: func() { kafka.Start(broker) }, pass: 4 * time.Second})
		s.runFault(fault{name: "an aggregator is killed", begin: func() { aggregators[0].Kill() }, pass: 6 * time.Second})
		s.runFault(fault{
			name:     "it is started again",
			mendable: func() { aggregators[0] = f.startAggregator("agg-0") }, pass: 5 * time.Second,
		})
		f.pauseAndGoOn(s, aggregators[1], 10*time.Second)
		s.runFault(fault{
			name:     "a fourth joins",
			mendable: func() { aggregators = append(aggregators, f.startAggregator("agg-3")) }, pass: 5 * time.Second,
		})
		former := redis.Primary()
		s.runFault(fault{
			name: redisFailsOver, begin: redis.KillPrimary,
			mendable: func() { redis.AwaitFailover(former) }, pass: 4 * time.Second,
		})
		f.countOnce(s, aggregators)
		s.endAndJudge()
		f.account(s, aggregators)
	})
	t.Run("acks=1", func(t *testing.T) {
		f := newKafkaFleet(t, kafka, testenv.Redis(t).URL(), "1", crowdRule)
		aggregators := f.startAggregators("agg-0", "agg-1")
		s := f.beginStory(f.startAPIs(3))
		broker := f.controller()
		s.runFault(fault{
			name: "the controller is killed",
			begin: func() {
				// The other brokers lag a little: records that only the leader has are lost.
				others := []int{(broker + 1) % 3, (broker + 2) % 3}
				for _, i := range others {
					kafka.Pause(i)
				}
				time.Sleep(400 * time.Millisecond)
				kafka.Kill(broker)
				for _, i := range others {
					kafka.Resume(i)
				}
			},
			mendable: func() { f.awaitLeaders(broker) }, pass: 4 * time.Second,
		})
		s.runFault(fault{name: "it returns", mendable: func() { kafka.Start(broker) }, pass: 4 * time.Second})
		s.endAndJudge()
		f.account(s, aggregators)
	})
}

// pauseAndGoOn pauses an aggregator until others have taken over its partitions.
func (f *kafkaFleet) pauseAndGoOn(s *story, aggregator *daemon, pass time.Duration) {
	f.t.Helper()
	before := f.takeovers()
	s.runFault(fault{name: "an aggregator is paused", begin: func() { aggregator.Signal(syscall.SIGSTOP) }, pass: pass})
	if f.takeovers() == before {
		f.t.Error("nobody took over what a paused aggregator had")
	}
	s.runFault(fault{name: "it goes on", begin: func() { aggregator.Signal(syscall.SIGCONT) }, pass: 5 * time.Second})
}

// takeovers returns how often partitions were taken over, over all aggregators.
func (f *kafkaFleet) takeovers() (sum int64) {
	f.t.Helper()
	for _, epoch := range epochs(f.client.HGetAll(f.t.Context(), f.layout.Owners).Val()) {
		sum += epoch
	}
	return sum
}

// countOnce checks that, without a fault, the aggregators together count each request once.
func (f *kafkaFleet) countOnce(s *story, aggregators []*daemon) {
	f.t.Helper()
	const onTheWay = time.Second // at most
	counted := func() (sum float64) {
		for _, d := range aggregators {
			sum += d.metric("hotparam_kafka_counted_total")
		}
		return sum
	}
	from, before := s.now(), counted()
	time.Sleep(4 * time.Second)
	to, n := s.now(), counted()-before
	least, most := s.crowd.asked(from, to-onTheWay), s.crowd.asked(from-onTheWay, s.now())
	f.t.Logf("%v were counted while about %d were asked for", n, s.crowd.asked(from, to))
	if n < float64(least) || n > float64(most) {
		f.t.Errorf("%v were counted, want %d to %d", n, least, most)
	}
}

// account compares the number of requests with the counts that the instances report as delivered
// or dropped, and with the counts in the topic. Counts missing there must be reported: as
// dropped, or as gaps in the packet numbers. It returns how many the instances dropped.
func (f *kafkaFleet) account(s *story, aggregators []*daemon) (dropped int64) {
	f.t.Helper()
	asked, missing := int64(0), int64(0)
	for _, x := range s.crowd.terms {
		asked += int64(len(x.asks))
	}
	var delivered int64
	within(f.t, patience, "all counts sent, or told as dropped", func() bool {
		delivered, dropped = 0, 0
		for _, a := range s.apis {
			in := a.state()
			delivered += in.Sink.Delivered
			dropped += in.Sink.Failed.Sum() + in.Collector.Dropped.TableFull
		}
		return delivered+dropped >= asked
	})
	has := f.readTopic()
	gaps := int64(0)
	for _, n := range has.gaps {
		gaps += n
	}
	for _, x := range s.crowd.terms {
		n := int64(len(x.asks)) - has.counts[x.member]
		missing += n
		switch {
		case n < 0:
			f.t.Errorf("%q: %d in the topic, and only %d were asked for", x.member, has.counts[x.member], len(x.asks))
		case n > 0 && dropped == 0 && has.gaps[x.partition] == 0:
			f.t.Errorf("%q: %d in the topic, %d were asked for, and nothing tells of the difference", x.member, has.counts[x.member], len(x.asks))
		}
	}
	var lost, late float64
	for _, d := range aggregators {
		lost += d.metric("hotparam_kafka_lost_records_total")
		late += d.metric("hotparam_late_counts_total")
	}
	f.t.Logf("%d asked for: instances say %d were delivered, %d dropped; %d are in the topic in %d records, %d records are missing there, %v for the aggregators; %v counts were late",
		asked, delivered, dropped, has.sum, has.records, gaps, lost, late)
	f.t.Logf("partition %d had no records of one instance for %v, until %.2fs", has.silence.partition,
		has.silence.to.Sub(has.silence.from), has.silence.to.Sub(s.crowd.began).Seconds())
	switch {
	case delivered+dropped != asked:
		f.t.Errorf("%d asked for, and %d delivered or dropped", asked, delivered+dropped)
	case f.acks == "all" && missing > dropped:
		f.t.Errorf("%d counts are missing in the topic, and %d were told as dropped", missing, dropped)
	case gaps > 0 && lost == 0:
		f.t.Errorf("%d records are missing in the topic, and the aggregators miss none", gaps)
	}
	return dropped
}
