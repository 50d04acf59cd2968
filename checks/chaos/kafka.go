package chaos

import (
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Kafka as the transport of counts. The session and the time-out are as short as a busy machine
// allows, so that a stuck client is replaced soon.
const (
	kafkaTopic   = "chaos-counters"
	kafkaSession = 2 * time.Second
	kafkaTimeout = 2 * time.Second
)

// The times after a fault within which a stuck client must have been replaced. A sink's client
// ends within 2 s. An aggregator's client is checked each second and ends within a time-out and a
// second. The next one joins the group within a session.
const (
	sinkReplaced   = 10*time.Second + kafkaTimeout + 2*time.Second
	sourceReplaced = 2*kafkaSession + 2*kafkaTimeout + 2*time.Second + kafkaTimeout + time.Second + kafkaSession
)

// kafkaServer is a Kafka of one broker. It advertises the relay's address, so all processes share
// the one relay.
type kafkaServer struct {
	*real.KafkaCluster
	relay *tcpRelay
}

func startKafka(f *processFleet) *kafkaServer {
	k := new(kafkaServer)
	k.KafkaCluster = real.Kafka(f.scope, real.KafkaConfig{
		Properties: map[string]string{
			"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0",
			// A killed broker may not return until its session has ended.
			"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500",
		},
		Advertise: func(broker string) string {
			k.relay = newTCPRelay(f.scope, broker, f.c.Seed<<8|200, testenv.NewGarbler(f.c.Seed))
			return k.relay.Addr()
		},
	})
	k.CreateTopic(kafkaTopic, 6, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	return k
}
