package chaos

import (
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// kafkaKinds are faults of Kafka and of the link to it. None is combined with a fault of an
// aggregator, since an aggregator that starts while Kafka is unavailable rightly does not run.
var kafkaKinds = []eventKind{
	{name: "slow-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", shortest: 2 * time.Second, longest: 6 * time.Second, begin: kafkaLink(slow)},
	{name: "silent-kafka", weight: 4, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", shortest: time.Second, longest: 6 * time.Second, begin: kafkaLink(silent)},
	{name: "cut-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", shortest: time.Second, longest: 6 * time.Second, begin: kafkaLink(cut)},
	{name: "garbled-kafka", weight: 5, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", shortest: time.Second, longest: 5 * time.Second, begin: kafkaLink(garbled)},
	{name: "throttled-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", shortest: time.Second, longest: 5 * time.Second, begin: kafkaLink(throttled)},
	{name: "kill-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", shortest: 200 * time.Millisecond, longest: 4 * time.Second, begin: killKafka},
	{name: "stop-kafka", weight: 3, scenarios: []string{"recovery", "kafka"}, deployment: "kafka", exclusive: "aggregator", shortest: time.Second, longest: 6 * time.Second, begin: stopKafka},
}

// kafkaEffect is the effect of a fault of Kafka: counts do not arrive, and clients may be stuck for
// a while. Requests and exact limits are not affected.
var kafkaEffect = effect{excuses: mayMissHotKeys | mayTroubleKafka}

// kafkaLink sets the mode of the link between all processes and Kafka.
func kafkaLink(m mode) func(r *run, _ *plannedFault) func() {
	return func(r *run, _ *plannedFault) func() {
		return r.during(kafkaEffect, func() { r.kafka.relay.setMode(m) }, func() {
			r.kafka.relay.setMode(through)
			r.revive()
		})
	}
}

// revive restarts aggregators that have ended, like a supervisor. An aggregator ends if the
// brokers answer that it may not read, and a damaged answer may say so.
func (r *run) revive() {
	for _, g := range r.aggregators {
		if !g.exited() {
			continue
		}
		r.logf("         %s has ended: it is started again", g.name)
		if text := g.current().Stderr(); strings.Contains(text, "\ngoroutine ") {
			r.recordViolation(oracle.Violation{At: r.now(), Invariant: oracle.I3, Subject: g.name, Text: text})
		}
		g.start()
	}
}

func killKafka(r *run, _ *plannedFault) func() {
	return r.during(kafkaEffect, func() { r.kafka.Kill(0) }, func() { r.kafka.Start(0) })
}

func stopKafka(r *run, _ *plannedFault) func() {
	return r.during(kafkaEffect, func() { r.kafka.Pause(0) }, func() { r.kafka.Resume(0) })
}
