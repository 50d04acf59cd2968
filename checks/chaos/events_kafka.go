package chaos

import (
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// kafkaKinds are faults of Kafka, and of what lies before it. None comes with a fault
// of an aggregator: one that starts while Kafka is away does not run, as it should.
var kafkaKinds = []kind{
	{name: "slow-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", least: 2 * time.Second, most: 6 * time.Second, begin: kafkaLink(slow)},
	{name: "silent-kafka", weight: 4, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", least: time.Second, most: 6 * time.Second, begin: kafkaLink(silent)},
	{name: "cut-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", least: time.Second, most: 6 * time.Second, begin: kafkaLink(cut)},
	{name: "garbled-kafka", weight: 5, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", least: time.Second, most: 5 * time.Second, begin: kafkaLink(garbled)},
	{name: "throttled-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", least: time.Second, most: 5 * time.Second, begin: kafkaLink(throttled)},
	{name: "kill-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", least: 200 * time.Millisecond, most: 4 * time.Second, begin: killKafka},
	{name: "stop-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", least: time.Second, most: 6 * time.Second, begin: stopKafka},
}

// kafkaAway is what a fault of Kafka excuses: that counts do not arrive, and for some
// time that clients are stuck. Requests and exact limits have nothing to do with it.
var kafkaAway = effect{publishing: true, kafka: true}

// kafkaLink puts the link between all processes and Kafka in a mode.
func kafkaLink(m mode) func(r *run, _ *event) func() {
	return func(r *run, _ *event) func() {
		end := r.judge.begin(kafkaAway)
		r.kafka.relay.set(m)
		return func() {
			r.kafka.relay.set(through)
			r.revive()
			end()
		}
	}
}

// revive starts aggregators that have ended, as what supervises them would: one to which
// the brokers say that it may not read ends, and a damaged answer may say so.
func (r *run) revive() {
	for _, g := range r.aggregators {
		if !g.exited() {
			continue
		}
		r.logf("         %s has ended: it is started again", g.name)
		if text := g.current().Stderr(); strings.Contains(text, "\ngoroutine ") {
			r.violated(oracle.Violation{At: r.now(), Invariant: oracle.I3, Subject: g.name, Text: text})
		}
		g.start()
	}
}

func killKafka(r *run, _ *event) func() {
	end := r.judge.begin(kafkaAway)
	r.kafka.Kill(0)
	return func() {
		r.kafka.Start(0)
		end()
	}
}

func stopKafka(r *run, _ *event) func() {
	end := r.judge.begin(kafkaAway)
	r.kafka.Pause(0)
	return func() {
		r.kafka.Resume(0)
		end()
	}
}
