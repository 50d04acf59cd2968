package kafkasource

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// certificate returns a certificate that no client trusts.
func certificate(t *testing.T) tls.Certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0]
}

func may(kind kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
}

func makeTopic(t *testing.T, cluster *kfake.Cluster, root bool, settings map[string]string) {
	t.Helper()
	opts := []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}
	if root {
		opts = append(opts, kgo.SASL(plain.Auth{User: "root", Pass: "toor"}.AsMechanism()))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	configs := make(map[string]*string)
	for name, value := range settings {
		configs[name] = &value
	}
	if _, err := kadm.NewClient(client).CreateTopic(context.Background(), 1, 1, configs, wire.DefaultTopic); err != nil {
		t.Fatal(err)
	}
}

// Faults that keep a source from working are reported, with the way to mend them.
func TestCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	topic := func(op kmsg.ACLOperation) kfake.ACL { return may(kmsg.ACLResourceTypeTopic, wire.DefaultTopic, op) }
	group := func(op kmsg.ACLOperation) kfake.ACL { return may(kmsg.ACLResourceTypeGroup, "hotparam-shop", op) }
	user := func(acls ...kfake.ACL) []kfake.Opt {
		return []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "toor"), kfake.User("PLAIN", "ada", "pass", acls...)}
	}
	ada := func(c *kafka.Connection) {
		c.SASL = &kafka.SASL{Mechanism: "PLAIN", User: "ada", Password: "pass"}
	}
	withTLS := func(c *kafka.Connection) { c.TLS = &kafka.TLS{} }
	some := map[string]string{}
	for _, test := range []struct {
		name    string
		cluster []kfake.Opt
		topic   map[string]string // settings, or nil for no topic
		change  func(*kafka.Connection)
		want    string // part of the error, or empty for none
		warns   string
	}{
		{"all is well", nil, map[string]string{"message.timestamp.type": "LogAppendTime"}, nil, "", ""},
		{"senders' times", nil, some, nil, "", "--add-config message.timestamp.type=LogAppendTime"},
		{"short retention", nil, map[string]string{"retention.ms": "60000"}, nil, "", "retention.ms=120000"},
		{"no broker", nil, some, func(c *kafka.Connection) { c.Brokers = []string{"127.0.0.1:1"} }, "127.0.0.1:1: unable to dial: dial tcp 127.0.0.1:1: connect: connection refused: nothing listens at the address", ""},
		{"no topic", nil, nil, nil, "kafka-topics.sh --bootstrap-server", ""},
		{"tls to a plain port", nil, some, func(c *kafka.Connection) {
			withTLS(c)
			c.Timeout = 500 * time.Millisecond // the broker does not answer
		}, "TLS", ""},
		{"plain to a tls port", []kfake.Opt{kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate(t)}})}, nil, nil, "tls", ""},
		{"an unknown authority", []kfake.Opt{kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate(t)}})}, nil, withTLS, "unknown authority; see tls.ca", ""},
		{"no password", user(), some, nil, "sasl", ""},
		{"a wrong password", user(), some, func(c *kafka.Connection) {
			c.SASL = &kafka.SASL{Mechanism: "PLAIN", User: "ada", Password: "guess"}
		}, "mechanism, user and password may be wrong", ""},
		{"another mechanism", user(), some, func(c *kafka.Connection) {
			c.SASL = &kafka.SASL{Mechanism: "SCRAM-SHA-512", User: "ada", Password: "pass"}
		}, "mechanism, user and password may be wrong", ""},
		{"no rights on the topic", user(group(kmsg.ACLOperationRead)), some, ada, "--operation Describe --operation Read --topic hotparam.counters", ""},
		{"may describe the topic alone", user(topic(kmsg.ACLOperationDescribe), group(kmsg.ACLOperationRead)), some, ada, "user ada may not read topic hotparam.counters", ""},
		{"no rights on the group", user(topic(kmsg.ACLOperationRead)), some, ada, "user ada may not join group hotparam-shop; allow it", ""},
		{"all the rights it needs", user(topic(kmsg.ACLOperationRead), group(kmsg.ACLOperationRead)), some, ada, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, test.cluster...)...)
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			if test.topic != nil {
				makeTopic(t, cluster, test.cluster != nil, test.topic)
			}
			var log logged
			c := Config{
				Connection: kafka.Connection{Brokers: cluster.ListenAddrs(), Timeout: 10 * time.Second},
				Rules:      &rules.Rules{Namespace: "shop", Rules: []rules.Rule{hotRule("r", 10, time.Minute)}},
				Publisher:  func(int32) (PartitionPublisher, error) { return nil, nil },
				Log:        slog.New(slog.NewTextHandler(&log, nil)),
			}
			if test.want != "" {
				c.Connection.Timeout = 2 * time.Second // some wait for it
			}
			if test.change != nil {
				test.change(&c.Connection)
			}
			s := New(c)
			err = s.Check(context.Background())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("told %v, want %q", err, test.want)
			}
			if test.warns != "" && log.count(test.warns) != 1 {
				t.Errorf("logged %q, want one with %q", log.lines, test.warns)
			}
			if test.name == "all is well" && log.count("WARN") != 0 {
				t.Errorf("logged %q, want no warning", log.lines)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	good := Config{
		Connection: kafka.Connection{Brokers: []string{"localhost:9092"}},
		Rules:      &rules.Rules{Namespace: "shop", Rules: []rules.Rule{hotRule("r", 10, time.Minute)}},
		Publisher:  func(int32) (PartitionPublisher, error) { return nil, nil },
	}
	s := New(good)
	if c := s.cfg; c.Topic != "hotparam.counters" || c.Group != "hotparam-shop" || c.Session != 10*time.Second || s.lookback() != 85*time.Second {
		t.Errorf("defaults %+v, looks back %v", c, s.lookback())
	}
	c := good
	c.Connection.Version = "99.0"
	if err := New(c).Run(context.Background()); err == nil || !strings.Contains(err.Error(), "ersion") {
		t.Errorf("version 99.0: told %v", err)
	}
	jump := hotRule("j", 10, time.Minute)
	jump.Hot[0].Kind, jump.Hot[0].Factor = rules.Jump, rules.Percent(200)
	if got := decode.Lookback(&rules.Rules{Rules: []rules.Rule{hotRule("r", 1, 2*time.Minute), jump}}); got != 11*time.Minute {
		t.Errorf("a jump over a minute looks back %v, want its baseline, too", got)
	}
	if got := homes(&rules.Rules{Namespace: "shop", Rules: []rules.Rule{hotRule("r", 1, time.Minute)}}, 3); fmt.Sprint(got) != "[-1]" {
		t.Errorf("homes %v, want none", got)
	}
}
