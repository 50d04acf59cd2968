package real

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/hotparam/hotparam/internal/testenv"
)

// kafkaAdmin is the tests' own user, who may do everything and logs in with a password.
const kafkaAdmin = "testenv-admin"

func (k *KafkaCluster) adminOptions(addrs ...string) []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(addrs...), kgo.ClientID("testenv")}
	if k.config.Users != nil {
		options = append(options, kgo.SASL(plain.Auth{User: kafkaAdmin, Pass: k.adminPassword()}.AsMechanism()))
	}
	if k.config.TLS {
		options = append(options, kgo.DialTLSConfig(k.certs.Config(k.tb)))
	}
	return options
}

func (k *KafkaCluster) adminPassword() string { return k.id }

// awaitBroker waits until broker i answers and reports itself and at least n brokers as members
// of the cluster.
func (k *KafkaCluster) awaitBroker(ctx context.Context, i, n int) error {
	return await(ctx, k, i, kmsg.NewPtrMetadataRequest(), func(m *kmsg.MetadataResponse) error {
		knowsItself := false
		for _, b := range m.Brokers {
			knowsItself = knowsItself || int(b.NodeID) == i+1
		}
		if !knowsItself || len(m.Brokers) < n {
			return fmt.Errorf("it knows %d of %d brokers, itself: %v", len(m.Brokers), n, knowsItself)
		}
		return nil
	})
}

// awaitTopic waits until broker i knows the topic with a leader for each partition.
func (k *KafkaCluster) awaitTopic(ctx context.Context, i int, topic string, partitions int) error {
	request := kmsg.NewPtrMetadataRequest()
	wanted := kmsg.NewMetadataRequestTopic()
	wanted.Topic = &topic
	request.Topics = append(request.Topics, wanted)
	return await(ctx, k, i, request, func(m *kmsg.MetadataResponse) error {
		led := 0
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				if p.Leader > 0 {
					led++
				}
			}
		}
		if led != partitions {
			return fmt.Errorf("it knows leaders of %d of %d partitions of %s", led, partitions, topic)
		}
		return nil
	})
}

// awaitRights waits until broker i knows the rights that were created. Its answer shows the
// rights that it applies, which reach it with a delay.
func (k *KafkaCluster) awaitRights(ctx context.Context, i int, made kadm.CreateACLsResults) error {
	for _, r := range made {
		request := kmsg.NewPtrDescribeACLsRequest()
		request.ResourceType, request.ResourceName, request.ResourcePatternType = r.Type, &r.Name, r.Pattern
		request.Principal, request.Host = &r.Principal, &r.Host
		request.Operation, request.PermissionType = r.Operation, r.Permission
		err := await(ctx, k, i, request, func(found *kmsg.DescribeACLsResponse) error {
			if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
				return err
			}
			if len(found.Resources) == 0 {
				return fmt.Errorf("it does not know that %s may %v %s", r.Principal, r.Operation, r.Name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// await sends a request to broker i, and no other, until wanted accepts the answer. It polls,
// since a starting server signals no event.
func await[R kmsg.Response](ctx context.Context, k *KafkaCluster, i int, request kmsg.Request, wanted func(R) error) error {
	client, err := kgo.NewClient(append(k.adminOptions(k.addrs[i]), kgo.DialTimeout(time.Second))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		answer, err := askOnce(ctx, client, request)
		if m, ok := answer.(*kmsg.MetadataResponse); ok && m.ClusterID != nil && *m.ClusterID != k.id {
			return fmt.Errorf("%w: %s is answered by another kafka", testenv.ErrPortTaken, k.addrs[i])
		}
		if err == nil {
			err = wanted(answer.(R))
		}
		if err == nil {
			return nil
		}
		if why := k.brokers[i].exited(); why != nil {
			return fmt.Errorf("broker %d: %w", i, why)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("broker %d at %s is not ready: %w", i, k.addrs[i], err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func askOnce(ctx context.Context, client *kgo.Client, request kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return client.SeedBrokers()[0].Request(ctx, request)
}
