package e2e

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// controller returns the index of the broker that now controls the cluster. When it dies, Kafka
// first needs an election, and the new controller waits a whole session before it declares a
// broker dead. With quickKafka that takes about three seconds.
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

// awaitLeaders waits until all live brokers agree that each partition has a leader other than the
// dead one.
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

// allLed reports whether, as seen by a broker, each partition has a leader other than dead.
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

// awaitGroup waits until the brokers have assigned the partitions to so many aggregators and the
// assignment has lasted a moment. A coordinator that was unavailable needs that moment to notice
// that its members' sessions have ended.
func (f *kafkaFleet) awaitGroup(members int) {
	f.t.Helper()
	const lasts = 500 * time.Millisecond
	client := f.kafka.Client()
	defer client.Close()
	var since time.Time
	took := within(f.t, patience, "the group has shared the partitions", func() bool {
		if !f.isShared(client, members) {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > lasts
	})
	f.t.Logf("the group has shared the partitions for %v after %v", lasts, took.Round(10*time.Millisecond))
}

func (f *kafkaFleet) isShared(client *kgo.Client, members int) bool {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	defer cancel()
	const group = "hotparam-shop"
	groups, err := kadm.NewClient(client).DescribeGroups(ctx, group)
	if err != nil {
		return false
	}
	g := groups[group]
	shared := g.AssignedPartitions()
	return g.State == "Stable" && len(g.Members) == members && len(shared[f.topic]) == partitions
}
