package e2e

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// controller is the broker that now controls the cluster. When it dies Kafka needs
// an election first, and the new one gives each broker a whole session anew before
// it takes it for dead: with quickKafka that takes about three seconds.
func (f *kafkaFleet) controller() int {
	f.t.Helper()
	client := f.kafka.Client()
	defer client.Close()
	req := kmsg.NewPtrDescribeQuorumRequest()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	res, err := req.RequestWith(ctx, client)
	if err != nil || len(res.Topics) != 1 || len(res.Topics[0].Partitions) != 1 {
		f.t.Fatalf("describe the quorum: %v, %+v", err, res)
	}
	return int(res.Topics[0].Partitions[0].LeaderID) - 1
}

// awaitLeaders waits until the brokers that live agree that another one than the
// dead leads each partition.
func (f *kafkaFleet) awaitLeaders(dead int) {
	f.t.Helper()
	client := f.kafka.Client()
	defer client.Close()
	took := within(f.t, patience, "all partitions have leaders", func() bool {
		for i := range f.kafka.Addrs() {
			if i != dead && !f.allLed(client.Broker(i+1), dead) {
				return false
			}
		}
		return true
	})
	f.t.Logf("all partitions have leaders %v after broker %d died", took.Round(10*time.Millisecond), dead)
}

// allLed asks a broker.
func (f *kafkaFleet) allLed(broker *kgo.Broker, dead int) bool {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &f.topic
	req.Topics = append(req.Topics, topic)
	res, err := broker.Request(ctx, req)
	if err != nil {
		return false
	}
	for _, t := range res.(*kmsg.MetadataResponse).Topics {
		for _, p := range t.Partitions {
			if p.Leader <= 0 || int(p.Leader) == dead+1 {
				return false
			}
		}
		if len(t.Partitions) != partitions {
			return false
		}
	}
	return true
}
