//go:build real

package kafkasource

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// Two sources share a topic of a real Kafka, over TLS and as a user with the least rights. When
// one ends the other continues with its partitions, and no key cools.
func TestRealKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Kafka")
	}
	const partitions = 4
	cluster := real.Kafka(t, real.KafkaConfig{
		TLS: true, ClientCerts: true, Users: map[string]string{"ada": "secret"}, Authorize: true,
		Properties: map[string]string{"group.min.session.timeout.ms": "1000"},
	})
	cluster.CreateTopic(wire.DefaultTopic, partitions, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	cluster.Allow("ada", kadm.NewACLs().Topics(wire.DefaultTopic).Groups("hotparam-shop").Operations(kadm.OpRead, kadm.OpDescribe))

	r := &redis{entries: make(map[rules.Key]entry), holders: make(map[int32]*publisher), tellers: make(map[int32]bool)}
	w := &world{T: t, redis: r, client: cluster.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))}
	defer w.client.Close()
	var members sync.WaitGroup
	defer members.Wait()
	files := cluster.Certificates()
	connection := kafka.Connection{
		Brokers: cluster.Addrs(), Version: "4.0",
		TLS:  &kafka.TLS{CA: files.CA, Cert: files.ClientCert, Key: files.ClientKey},
		SASL: &kafka.SASL{Mechanism: "SCRAM-SHA-512", User: "ada", Password: "secret"},
	}
	join := func() (*member, context.CancelFunc) {
		m := &member{log: new(logged)}
		m.Source = New(Config{
			Connection: connection,
			Session:    1500 * time.Millisecond, Publisher: r.publisher,
			Rules: &rules.Rules{Namespace: "shop", Rules: []rules.Rule{quick()}},
			Log:   slog.New(slog.NewTextHandler(m.log, nil)),
		})
		m.commitEvery = time.Second
		if err := m.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		members.Go(func() {
			if err := m.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		return m, cancel
	}
	nobody := connection
	nobody.TLS = &kafka.TLS{CA: files.CA}
	stranger := New(Config{Connection: nobody, Publisher: r.publisher, Rules: &rules.Rules{Namespace: "shop", Rules: []rules.Rule{quick()}}})
	if err := stranger.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "tls.cert and tls.key") {
		t.Errorf("without a certificate: %v", err)
	}
	first, end := join()
	defer end()
	w.has(first, partitions)
	defer w.instance("a", partitions).runs(everywhere(partitions))()
	w.allHot(partitions)

	second, leave := join()
	defer leave()
	w.has(first, partitions/2)
	w.has(second, partitions/2)
	time.Sleep(2 * time.Second)
	leave()
	w.has(first, partitions)
	time.Sleep(4 * time.Second)
	w.unchanged(partitions)
	s := first.Stats()
	// A commit during one of the two rebalances is refused, and repeated.
	if s.Decoder.LostPackets != 0 || s.Decoder.Duplicates != 0 || s.CommitErrors > 2 || s.Decoder.Malformed != 0 {
		t.Errorf("%+v\n%s", s, strings.Join(first.log.lines, ""))
	}
	committed, err := kadm.NewClient(w.client).FetchOffsets(t.Context(), "hotparam-shop")
	if err != nil || len(committed[wire.DefaultTopic]) != partitions {
		t.Errorf("committed %v, %v: want it of all partitions", committed, err)
	}
}
