package real

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A killed broker may restart only after the controller has declared it dead.
var quickly = map[string]string{"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}

func TestKafkaKeepsItsDataOverAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	k := Kafka(t, KafkaConfig{Properties: quickly})
	k.CreateTopic("t", 2, 1, map[string]string{"retention.ms": "60000"})
	produce(t, k, "t", "before")

	k.Kill(0)
	k.Kill(0) // once more is allowed
	client := k.Client(kgo.DialTimeout(100*time.Millisecond), kgo.RequestTimeoutOverhead(100*time.Millisecond))
	defer client.Close()
	if err := client.Ping(t.Context()); err == nil {
		t.Error("a killed broker answers")
	}

	k.Start(0)
	k.Pause(0)
	if err := client.Ping(t.Context()); err == nil {
		t.Error("a paused broker answers")
	}
	k.Resume(0)
	if got := consume(t, k, "t"); got != "before" {
		t.Errorf("read %q after the broker's return", got)
	}
}

// A broker advertises the address of a relay, and the cluster's own methods need none.
func TestKafkaAdvertisesARelay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	const relay = "127.0.0.1:1" // no one listens there
	var broker string
	k := Kafka(t, KafkaConfig{Advertise: func(addr string) string {
		broker = addr
		return relay
	}})
	if got := k.Addrs(); len(got) != 1 || got[0] != broker {
		t.Errorf("Addrs: %v, want %s", got, broker)
	}
	client := k.Client(kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == relay {
			addr = broker
		} else if addr != broker {
			t.Errorf("a client dials %s", addr)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}))
	defer client.Close()
	if brokers, err := kadm.NewClient(client).ListBrokers(t.Context()); err != nil || len(brokers) != 1 || brokers[0].Host+":"+strconv.Itoa(int(brokers[0].Port)) != relay {
		t.Errorf("brokers: %v, %v, want %s", brokers, err, relay)
	}
	k.Kill(0)
	k.Start(0)
}

func TestKafkaOfThreeServesOnWithoutOne(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	k := Kafka(t, KafkaConfig{Brokers: 3, Properties: quickly})
	k.CreateTopic("t", 3, 3, nil)
	k.Kill(1)
	produce(t, k, "t", "without one") // waits for the election
	k.Start(1)
	if got := consume(t, k, "t"); got != "without one" {
		t.Errorf("read %q", got)
	}
}

var errTLS = errors.New("remote error: tls: ") // an alert has no type

func TestKafkaAsksWhoIsThere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	users := map[string]string{"alice": "alice-secret"}
	k := Kafka(t, KafkaConfig{TLS: true, ClientCerts: true, Users: users, Authorize: true})
	k.CreateTopic("t", 1, 1, nil)
	produce(t, k, "t", "by the administrator")

	ask := func(what string, want error, options ...kgo.Opt) {
		t.Helper()
		client, err := kgo.NewClient(append(options, kgo.SeedBrokers(k.Addrs()...), kgo.RecordRetries(0), kgo.UnknownTopicRetries(0))...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err = client.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("x")}).FirstErr()
		if !errors.Is(err, want) && (err == nil || want == nil || !strings.Contains(err.Error(), want.Error())) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	certificate := kgo.DialTLSConfig(k.Certificates().Config(t))
	login := func(password string) kgo.Opt {
		return kgo.SASL(scram.Auth{User: "alice", Pass: password}.AsSha256Mechanism())
	}
	ask("wrong password", kerr.SaslAuthenticationFailed, certificate, login("guessed"))
	ask("no certificate", errTLS, kgo.DialTLSConfig(&tls.Config{RootCAs: k.Certificates().Config(t).RootCAs, MinVersion: tls.VersionTLS12}), login("alice-secret"))
	ask("missing rights", kerr.TopicAuthorizationFailed, certificate, login("alice-secret"))
	k.Allow("alice", kadm.NewACLs().Topics("t").Operations(kadm.OpWrite, kadm.OpDescribe))
	ask("allowed", nil, certificate, login("alice-secret"))
}

// If another process takes a port first, the cluster chooses other ports and the test does not
// fail.
func TestLocalKafkaSeesThatThePortIsTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	needKafka(t)
	k := &KafkaCluster{tb: t, config: KafkaConfig{Brokers: 1}, id: newKafkaID()}
	if err := newBrokers(k); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", k.addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := k.startAll(); !errors.Is(err, testenv.ErrPortTaken) {
		t.Errorf("start on a port in use: %v, want ErrPortTaken", err)
	}
}

func TestKafkaWithoutServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CI", "true")
	if got := outcome(t, func(tb testing.TB) { Kafka(tb, KafkaConfig{}) }); got != "failed" {
		t.Errorf("Kafka in CI without any server: the test was %s, want failed", got)
	}
}

func TestKafkaRefusesWhatItCannotBe(t *testing.T) {
	for _, config := range []KafkaConfig{{Brokers: 2}, {ClientCerts: true}, {TLS: true, ClientCerts: true, Authorize: true}} {
		if got := outcome(t, func(tb testing.TB) { Kafka(tb, config) }); got != "failed" {
			t.Errorf("%+v: the test was %s, want failed", config, got)
		}
	}
}

func produce(t *testing.T, k *KafkaCluster, topic, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	client := k.Client()
	defer client.Close()
	record := &kgo.Record{Topic: topic, Value: []byte(value)}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
}

func consume(t *testing.T, k *KafkaCluster, topic string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	client := k.Client(kgo.ConsumeTopics(topic))
	defer client.Close()
	records := client.PollFetches(ctx).Records()
	if len(records) == 0 {
		t.Fatal("nothing to read")
	}
	return string(records[0].Value)
}
