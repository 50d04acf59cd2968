package kafkasink_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/kafka"
)

func right(op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
}

func sasl(mechanism, user, password string) func(*kafkasink.Config) {
	return func(c *kafkasink.Config) {
		c.Connection.SASL = &kafka.SASL{Mechanism: mechanism, User: user, Password: password}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ca, server := certificate(t)
	plain := fake(t)
	private := fake(t, kfake.TLS(server))
	users := fake(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser(kafka.SCRAMSHA256, "admin", "admin"),
		kfake.User(kafka.SCRAMSHA512, "alice", "secret", right(kmsg.ACLOperationWrite), right(kmsg.ACLOperationDescribe)),
		kfake.User(kafka.Plain, "bob", "secret", right(kmsg.ACLOperationDescribe)),
		kfake.User(kafka.Plain, "eve", "secret"))
	old := fake(t, kfake.MaxVersions(kversion.V0_10_2()))
	nobody := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	withTLS := func(t kafka.TLS) func(*kafkasink.Config) {
		return func(c *kafkasink.Config) { c.Connection.TLS = &t }
	}
	for _, c := range []struct {
		name   string
		addrs  []string
		change func(*kafkasink.Config)
		want   []string // in the error; empty if all is well
	}{
		{"well", plain.ListenAddrs(), func(*kafkasink.Config) {}, nil},
		{"one broker is away", []string{nobody, plain.ListenAddrs()[0]}, func(*kafkasink.Config) {}, nil},
		{"idempotent", plain.ListenAddrs(), idempotent, nil},
		{"TLS", private.ListenAddrs(), withTLS(kafka.TLS{CA: ca}), nil},
		{"SCRAM-SHA-512", users.ListenAddrs(), sasl(kafka.SCRAMSHA512, "alice", "secret"), nil},
		{"SCRAM-SHA-256", users.ListenAddrs(), sasl(kafka.SCRAMSHA256, "admin", "admin"), nil},
		{"nobody listens", []string{nobody}, func(*kafkasink.Config) {}, []string{nobody, "refused", "nothing listens"}},
		{"silence", []string{silent.Addr().String()}, func(*kafkasink.Config) {}, []string{silent.Addr().String(), "timeout"}},
		{"no such host", []string{"no.such.host.invalid:9092"}, func(*kafkasink.Config) {}, []string{"no.such.host.invalid"}},
		{"TLS to a plain port", plain.ListenAddrs(), withTLS(kafka.TLS{CA: ca}), []string{"does not talk TLS", "leave tls out"}},
		{"plain to a TLS port", private.ListenAddrs(), func(*kafkasink.Config) {}, []string{"talks TLS", "set tls"}},
		{"unknown authority", private.ListenAddrs(), withTLS(kafka.TLS{}), []string{"tls.ca"}},
		{"another's certificate", private.ListenAddrs(), withTLS(kafka.TLS{CA: ca, ServerName: "kafka"}), []string{"tls.server_name"}},
		{"no log-in", users.ListenAddrs(), func(*kafkasink.Config) {}, []string{"set sasl"}},
		{"wrong password", users.ListenAddrs(), sasl(kafka.Plain, "bob", "wrong"), []string{"user and password may be wrong"}},
		{"wrong SCRAM password", users.ListenAddrs(), sasl(kafka.SCRAMSHA512, "alice", "wrong"), []string{"user and password may be wrong"}},
		{"missing topic", plain.ListenAddrs(), func(c *kafkasink.Config) { c.Topic = "none" },
			[]string{"topic none does not exist", "kafka-topics.sh", "--topic none", "LogAppendTime"}},
		{"may not write", users.ListenAddrs(), sasl(kafka.Plain, "bob", "secret"),
			[]string{"user bob may not write", "kafka-acls.sh", "--operation Write"}},
		{"may not see", users.ListenAddrs(), sasl(kafka.Plain, "eve", "secret"), []string{"user eve may not see", "--operation Describe"}},
		{"old", old.ListenAddrs(), func(*kafkasink.Config) {}, []string{"older than Kafka 0.11"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSink(t, config(c.addrs, c.change, func(k *kafkasink.Config) {
				if c.want != nil { // some wait for it
					k.Connection.Timeout = 2 * time.Second
				}
			}))
			err := s.Check(t.Context())
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v", err)
			}
			t.Log(err)
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q has no %q", err, part)
				}
			}
			if c.want == nil { // and it can
				g := &giver{t: t, sink: s}
				g.connect()
				g.send(collector.Flush{}, terms(3)...)
				g.drained()
				if s := g.conserved(); s.Delivered != 3 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := config([]string{silent.Addr().String()})
	c.Connection.Timeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := newSink(t, c).Check(ctx); err == nil {
		t.Error("no error")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// The address that the cluster announces for a leader cannot be reached.
func TestCheckAdvertisedAddress(t *testing.T) {
	t.Parallel()
	c := fake(t)
	c.ControlKey(int16(kmsg.Metadata), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.MetadataRequest)
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = 1, "127.0.0.1", int32(testenv.FreePort(t))
		resp.Brokers = append(resp.Brokers, b)
		x := kmsg.NewMetadataResponseTopic()
		x.Topic = kmsg.StringPtr(topic)
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Leader = 1
		x.Partitions = append(x.Partitions, p)
		resp.Topics = append(resp.Topics, x)
		return resp, nil, true
	})
	err := newSink(t, config(c.ListenAddrs())).Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "advertised.listeners") {
		t.Errorf("got %v", err)
	}
}

// certificate returns a self-signed certificate for 127.0.0.1.
func certificate(t testing.TB) (ca string, server *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fake"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return ca, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
