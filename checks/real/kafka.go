package real

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/testenv"
)

// kafkaPatience bounds the time until a cluster is ready. Three Java programs start together, on
// a machine that may be busy with other tests.
const kafkaPatience = 90 * time.Second

// rightsPatience bounds the time until brokers know a user's rights.
const rightsPatience = 30 * time.Second

// KafkaConfig configures a cluster. The zero value is one broker that accepts any client without
// encryption.
type KafkaConfig struct {
	// Brokers is 1 (or 0) or 3. With three, topics may have three replicas, and a record with
	// acks=all is in two of them.
	Brokers int
	// Properties are added to each broker's server.properties and override the defaults.
	Properties map[string]string
	// TLS requires clients to use TLS. The certificates are [KafkaCluster.Certificates].
	TLS bool
	// ClientCerts requires clients to present a certificate. It needs TLS.
	ClientCerts bool
	// Users maps the users who may log in to their passwords (letters, digits and dashes), by
	// PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. A nil Users requires no login.
	Users map[string]string
	// Authorize restricts users to the operations that [KafkaCluster.Allow] allows.
	Authorize bool
	// Advertise returns the host:port that a broker announces to clients in place of its own,
	// such as that of a relay to it. It is called before the broker starts. A nil Advertise
	// changes nothing.
	Advertise func(broker string) string
}

// KafkaCluster is a real Kafka, in KRaft mode, that belongs to one test. Brokers are numbered
// from 0, and each is also a controller. Topics are not created by use. Its methods must be
// called from the test's own goroutine.
type KafkaCluster struct {
	tb      testing.TB
	config  KafkaConfig
	id      string
	certs   testenv.CertificateFiles // certificates if TLS is set
	brokers []*kafkaBroker
	addrs   []string
}

// Kafka starts a Kafka 4.3.1 for the test and returns when all brokers answer and know each
// other. It runs on the java of the PATH, from jars that Maven (mvn) fetches once into the user's
// cache directory. Without either the test is skipped (see the package).
func Kafka(tb testing.TB, config KafkaConfig) *KafkaCluster {
	tb.Helper()
	config.Brokers = cmp.Or(config.Brokers, 1)
	if config.Brokers != 1 && config.Brokers != 3 {
		tb.Fatalf("real: a Kafka of %d brokers: must be 1 or 3", config.Brokers)
	}
	if config.ClientCerts && !config.TLS {
		tb.Fatal("real: KafkaConfig.ClientCerts needs TLS")
	}
	if config.Authorize && config.Users == nil {
		tb.Fatal("real: KafkaConfig.Authorize needs Users: else all are the same to Kafka")
	}
	var k *KafkaCluster
	testenv.OnFreePorts(tb, "kafka", func() error {
		k = &KafkaCluster{tb: tb, config: config, id: newKafkaID()}
		if err := newBrokers(k); err != nil {
			return err
		}
		err := k.startAll()
		if err != nil { // the next try uses other ports
			for i := range k.brokers {
				k.Kill(i)
			}
		}
		return err
	})
	return k
}

func (k *KafkaCluster) startAll() error {
	ctx, cancel := context.WithTimeout(k.tb.Context(), kafkaPatience)
	defer cancel()
	for _, b := range k.brokers {
		b.start()
	}
	for i := range k.brokers {
		if err := k.awaitBroker(ctx, i, len(k.brokers)); err != nil {
			return err
		}
	}
	return nil
}

// newKafkaID returns a random id of 16 bytes in Kafka's form. It distinguishes a cluster from
// another one that took its port.
func newKafkaID() string {
	var id [16]byte
	rand.Read(id[:])
	id[0] &= 0x7f // an id must not begin with a dash
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// Addrs returns the brokers' host:port, by number, without the addresses of
// [KafkaConfig.Advertise]. They never change.
func (k *KafkaCluster) Addrs() []string { return append([]string(nil), k.addrs...) }

// Certificates returns the certificates of a cluster with TLS. All its brokers present the
// server's.
func (k *KafkaCluster) Certificates() testenv.CertificateFiles { return k.certs }

// Classpath returns the class path of Kafka's jars, including kafka-clients and a logger, for
// "java -cp". If they cannot be fetched, the test is skipped.
func (k *KafkaCluster) Classpath() string {
	k.tb.Helper()
	return needKafka(k.tb) + "/*"
}

// CreateTopic creates a topic and returns when each running broker knows the leader of each
// partition.
func (k *KafkaCluster) CreateTopic(name string, partitions, replicas int, config map[string]string) {
	k.tb.Helper()
	values := make(map[string]*string, len(config))
	for key, value := range config {
		values[key] = &value
	}
	k.do("create topic "+name, func(ctx context.Context) error {
		client := k.Client()
		defer client.Close()
		if _, err := kadm.NewClient(client).CreateTopic(ctx, int32(partitions), int16(replicas), values, name); err != nil {
			return err
		}
		for i, b := range k.brokers {
			if b.exited() == nil {
				if err := k.awaitTopic(ctx, i, name, partitions); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Allow grants a user the rights of the rules and returns when all brokers know them.
//
//	k.Allow("alice", kadm.NewACLs().Topics("counters").Operations(kadm.OpWrite, kadm.OpDescribe))
func (k *KafkaCluster) Allow(user string, rules *kadm.ACLBuilder) {
	k.tb.Helper()
	rules = rules.Allow("User:" + user).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral)
	k.do("allow "+user, func(ctx context.Context) error {
		client := k.Client()
		defer client.Close()
		results, err := kadm.NewClient(client).CreateACLs(ctx, rules)
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, rightsPatience)
		defer cancel()
		for i := range k.brokers {
			if err := k.awaitRights(ctx, i, results); err != nil {
				return err
			}
		}
		return nil
	})
}

// Client returns a client that may do everything. The caller must close it.
func (k *KafkaCluster) Client(options ...kgo.Opt) *kgo.Client {
	k.tb.Helper()
	client, err := kgo.NewClient(append(k.adminOptions(k.addrs...), options...)...)
	if err != nil {
		k.tb.Fatalf("real: make a client of kafka: %v", err)
	}
	return client
}

// Kill kills broker i (SIGKILL) and returns when it has ended.
func (k *KafkaCluster) Kill(i int) { k.brokers[i].process.Kill() }

// Start restarts broker i after Kill, on the same address and with its former data. It returns
// when the broker answers and belongs to the cluster again. Its replicas may still have to catch
// up.
func (k *KafkaCluster) Start(i int) {
	k.tb.Helper()
	k.do(fmt.Sprintf("start broker %d", i), func(ctx context.Context) error {
		k.brokers[i].start()
		return k.awaitBroker(ctx, i, 1)
	})
}

// Pause stops broker i (SIGSTOP): connections stay open, but nothing is answered until Resume.
func (k *KafkaCluster) Pause(i int) {
	k.tb.Helper()
	k.brokers[i].process.Pause()
}

// Resume continues a paused broker.
func (k *KafkaCluster) Resume(i int) {
	k.tb.Helper()
	k.brokers[i].process.Resume()
}

func (k *KafkaCluster) do(what string, action func(context.Context) error) {
	k.tb.Helper()
	ctx, cancel := context.WithTimeout(k.tb.Context(), kafkaPatience)
	defer cancel()
	if err := action(ctx); err != nil {
		k.tb.Fatalf("real: %s of kafka at %s: %v", what, k.addrs, err)
	}
}
