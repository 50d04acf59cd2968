//go:build real

package kafkasink_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/kafka"
)

// The fake cannot show whether a real Kafka accepts all our requests. This test does.
func TestRealKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	k := real.Kafka(t, real.KafkaConfig{
		TLS: true, ClientCerts: true, Users: map[string]string{"alice": "secret", "bob": "secret"}, Authorize: true,
	})
	k.CreateTopic(topic, 3, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	k.Allow("alice", kadm.NewACLs().Topics(topic).Operations(kadm.OpWrite, kadm.OpDescribe))
	k.Allow("bob", kadm.NewACLs().Topics(topic).Operations(kadm.OpDescribe))
	as := func(mechanism, user, password string) func(*kafkasink.Config) {
		return func(c *kafkasink.Config) {
			files := k.Certificates()
			c.Connection.TLS = &kafka.TLS{CA: files.CA, Cert: files.ClientCert, Key: files.ClientKey}
			sasl(mechanism, user, password)(c)
		}
	}
	alice := as(kafka.SCRAMSHA512, "alice", "secret")
	given := int64(0)
	for name, change := range map[string]func(*kafkasink.Config){
		"acks 1, zstd, PLAIN":           as(kafka.Plain, "alice", "secret"),
		"acks 1, lz4, SCRAM-SHA-256":    func(c *kafkasink.Config) { as(kafka.SCRAMSHA256, "alice", "secret")(c); c.Compression = kafkasink.LZ4 },
		"acks all, none, SCRAM-SHA-512": func(c *kafkasink.Config) { alice(c); acksAll(c); c.Compression = kafkasink.NoCompression },
		"idempotent, 3.6":               func(c *kafkasink.Config) { alice(c); idempotent(c); c.Connection.Version = "3.6" },
		"idempotent":                    func(c *kafkasink.Config) { alice(c); idempotent(c) },
	} {
		t.Run(name, func(t *testing.T) {
			g := &giver{t: t, sink: newSink(t, config(k.Addrs(), change))}
			if err := g.sink.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.connect()
			for range 10 {
				g.send(collector.Flush{}, terms(500)...)
			}
			g.drained()
			if s := g.conserved(); s.Failed.Sum() != s.Failed.NotConnected || s.Delivered != 5000 {
				t.Errorf("%+v", s)
			}
			given += 5000
		})
	}
	for name, c := range map[string]struct {
		change func(*kafkasink.Config)
		want   string
	}{
		"wrong password": {as(kafka.SCRAMSHA512, "alice", "wrong"), "refuse user or password"},
		"wrong plainly":  {as(kafka.Plain, "alice", "wrong"), "refuse user or password"},
		"may not write":  {as(kafka.Plain, "bob", "secret"), "user bob may not write"},
		"no log-in":      {func(c *kafkasink.Config) { as(kafka.Plain, "a", "b")(c); c.Connection.SASL = nil }, "set sasl"},
		"no TLS":         {func(c *kafkasink.Config) { alice(c); c.Connection.TLS = nil }, "talks TLS"},
		"no certificate": {func(c *kafkasink.Config) { alice(c); c.Connection.TLS.Cert, c.Connection.TLS.Key = "", "" }, "see tls.cert"},
		"missing topic":  {func(c *kafkasink.Config) { alice(c); c.Topic = "none" }, "topic none"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newSink(t, config(k.Addrs(), c.change)).Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			t.Log(err)
		})
	}
	t.Run("restart", func(t *testing.T) {
		g := &giver{t: t, sink: newSink(t, config(k.Addrs(), alice, idempotent))}
		g.connect()
		g.send(collector.Flush{}, terms(100)...)
		g.drained()
		k.Kill(0)
		g.send(collector.Flush{}, terms(100)...)
		k.Start(0)
		g.send(collector.Flush{}, terms(100)...)
		g.drained()
		s := g.conserved()
		t.Logf("%+v", s)
		if s.Delivered+s.Failed.Delivery != 300 || s.Delivered < 200 { // the start may take longer than records are kept
			t.Errorf("%+v", s)
		}
		given += s.Delivered
	})
	got := readerOf(t, k.Client(fromTheStart...)).until(func(got []received) bool { return seen(got) >= given })
	if sum := seen(got); sum != given {
		t.Errorf("%d counts were seen, %d were given", sum, given)
	}
}
