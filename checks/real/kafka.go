package real

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/testenv"
)

// kafkaPatience is how long a cluster may take to get ready: three Java programs
// start at once, on a machine that may be busy with other tests.
const kafkaPatience = 90 * time.Second

// rightsPatience is how long brokers may take to hear of a user's rights.
const rightsPatience = 30 * time.Second

// KafkaConfig is what kind of cluster a test wants. The zero value: one broker that
// talks in the clear to anybody.
type KafkaConfig struct {
	// Brokers is 1 (or 0) or 3. With three, topics may have three replicas and a
	// record with acks=all is in two of them.
	Brokers int
	// Properties are added to each broker's server.properties, and win.
	Properties map[string]string
	// TLS: clients must talk TLS. The certificates are [KafkaCluster.Certificates].
	TLS bool
	// ClientCerts: with TLS, clients must show theirs.
	ClientCerts bool
	// Users who may log in, with their passwords (letters, digits and dashes), by
	// PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. With nil no client needs to.
	Users map[string]string
	// Authorize: users may do only what [KafkaCluster.Allow] allows.
	Authorize bool
	// Advertise returns the host:port that a broker names to clients, in place of the
	// one at which it can be reached: that of a relay to it. It is called before the
	// broker starts. A nil Advertise changes nothing.
	Advertise func(broker string) string
}

// KafkaCluster is a real Kafka, in KRaft mode, that belongs to one test. Brokers are
// numbered from 0; each is a controller, too. Topics are not made by being used. Its
// methods belong to the test's own goroutine.
type KafkaCluster struct {
	tb      testing.TB
	config  KafkaConfig
	id      string
	certs   testenv.CertificateFiles // with TLS
	brokers []*kafkaBroker
	addrs   []string
}

// Kafka starts a Kafka 4.3.1 for the test and returns when all brokers answer and
// know each other. It is run by the java of the PATH from jars that Maven (mvn) gets
// once into the user's cache directory. Without either the test is skipped (see the
// package).
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
	if err := kafkaRuns(tb.Context()); err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no Kafka: install Java and Maven (Debian: apt-get install default-jdk-headless maven): %v", err))
	}
	return startKafka(tb, config)
}

// kafkaRuns returns why it does not, or nil if it does.
func kafkaRuns(ctx context.Context) error {
	if _, err := exec.LookPath("java"); err != nil {
		return err
	}
	_, err := kafkaJars(ctx)
	return err
}

func startKafka(tb testing.TB, config KafkaConfig) *KafkaCluster {
	tb.Helper()
	var err error
	for range 5 {
		k := &KafkaCluster{tb: tb, config: config, id: newKafkaID()}
		if err = newBrokers(k); err == nil {
			err = k.startAll()
		}
		if err == nil {
			return k
		}
		k.killAll() // all get other ports
		if !errors.Is(err, testenv.ErrPortTaken) {
			break
		}
	}
	tb.Fatalf("real: start kafka: %v", err)
	return nil
}

func (k *KafkaCluster) startAll() error {
	ctx, cancel := context.WithTimeout(k.tb.Context(), kafkaPatience)
	defer cancel()
	for i, b := range k.brokers {
		if err := b.start(ctx); err != nil {
			return fmt.Errorf("broker %d: %w", i, err)
		}
	}
	for i := range k.brokers {
		if err := k.awaitBroker(ctx, i, len(k.brokers)); err != nil {
			return err
		}
	}
	return nil
}

func (k *KafkaCluster) killAll() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.tb.Context()), testenv.Grace)
	defer cancel()
	for i, b := range k.brokers {
		if err := b.kill(ctx); err != nil {
			k.tb.Logf("real: kill broker %d: %v", i, err)
		}
	}
}

// newKafkaID is a random id in the form that Kafka wants, of 16 bytes. By it a
// cluster is distinguished from another one that took its port.
func newKafkaID() string {
	var id [16]byte
	rand.Read(id[:])
	id[0] &= 0x7f // an id must not begin with a dash
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// Addrs are the brokers' host:port, by number, without what [KafkaConfig.Advertise] puts
// before them. They never change.
func (k *KafkaCluster) Addrs() []string { return append([]string(nil), k.addrs...) }

// Certificates are those of a cluster with TLS: all its brokers show the server's.
func (k *KafkaCluster) Certificates() testenv.CertificateFiles { return k.certs }

// Classpath is that of Kafka's jars, kafka-clients and a logger among them, for
// "java -cp". The test is skipped where they cannot be had.
func (k *KafkaCluster) Classpath() string {
	k.tb.Helper()
	dir, err := kafkaJars(k.tb.Context())
	if err != nil {
		testenv.Unavailable(k.tb, err.Error())
	}
	return dir + "/*"
}

// CreateTopic makes a topic and returns when each broker that runs knows the leader
// of each partition.
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
			if b.exited(ctx) == nil {
				if err := k.awaitTopic(ctx, i, name, partitions); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Allow lets a user do what the rules say, and returns when all brokers know it, as
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

// Client is a client that may do everything. Whoever asks for it closes it.
func (k *KafkaCluster) Client(options ...kgo.Opt) *kgo.Client {
	k.tb.Helper()
	client, err := kgo.NewClient(append(k.adminOptions(k.addrs...), options...)...)
	if err != nil {
		k.tb.Fatalf("real: make a client of kafka: %v", err)
	}
	return client
}

// Kill ends broker i at once (SIGKILL) and returns when it is gone.
func (k *KafkaCluster) Kill(i int) {
	k.tb.Helper()
	k.do(fmt.Sprintf("kill broker %d", i), k.brokers[i].kill)
}

// Start starts broker i, which was killed, on the same address with the data that it
// had, and returns when it answers and belongs to the cluster again. Its replicas
// may still have to catch up.
func (k *KafkaCluster) Start(i int) {
	k.tb.Helper()
	k.do(fmt.Sprintf("start broker %d", i), func(ctx context.Context) error {
		if err := k.brokers[i].start(ctx); err != nil {
			return err
		}
		return k.awaitBroker(ctx, i, 1)
	})
}

// Pause stops broker i in its tracks (SIGSTOP): connections stay open, nothing is
// answered until Resume.
func (k *KafkaCluster) Pause(i int) {
	k.tb.Helper()
	k.do(fmt.Sprintf("pause broker %d", i), k.brokers[i].pause)
}

// Resume lets a paused broker go on.
func (k *KafkaCluster) Resume(i int) {
	k.tb.Helper()
	k.do(fmt.Sprintf("resume broker %d", i), k.brokers[i].resume)
}

func (k *KafkaCluster) do(what string, action func(context.Context) error) {
	k.tb.Helper()
	ctx, cancel := context.WithTimeout(k.tb.Context(), kafkaPatience)
	defer cancel()
	if err := action(ctx); err != nil {
		k.tb.Fatalf("real: %s of kafka at %s: %v", what, k.addrs, err)
	}
}
