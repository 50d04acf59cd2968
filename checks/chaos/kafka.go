package chaos

import (
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// The counts over Kafka. The session and the time-out are as short as a busy machine
// lets them be: so much sooner is a client that is stuck replaced.
const (
	kafkaTopic   = "chaos-counters"
	kafkaSession = 2 * time.Second
	kafkaTimeout = 2 * time.Second
)

// How long after a fault it may take until a client that is stuck has been replaced: a
// sink's ends within 2 s; an aggregator's is looked at each second, ends within a
// time-out and a second, and the next one joins the group within a session.
const (
	sinkReplaced   = 10*time.Second + kafkaTimeout + 2*time.Second
	sourceReplaced = 2*kafkaSession + 2*kafkaTimeout + 2*time.Second + kafkaTimeout + time.Second + kafkaSession
)

// kafkaServer is a Kafka of one broker. It names the relay's address to its clients, so
// all processes share the one relay.
type kafkaServer struct {
	*real.KafkaCluster
	relay *tcpRelay
}

func startKafka(f *fleet) *kafkaServer {
	k := new(kafkaServer)
	k.KafkaCluster = real.Kafka(f.scope, real.KafkaConfig{
		Properties: map[string]string{
			"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0",
			// Until the session of a broker that was killed has ended it may not come back.
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
