package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/kafka"
)

func good() kafka.Connection {
	return kafka.Connection{Brokers: []string{"kafka-1:9092", "[::1]:9093"}}
}

func TestValidate(t *testing.T) {
	sasl := kafka.SASL{Mechanism: kafka.SCRAMSHA512, User: "u", Password: "p"}
	for _, c := range []struct {
		name   string
		change func(*kafka.Connection)
		want   []string // in the error; empty if valid
	}{
		{"brokers alone", func(*kafka.Connection) {}, nil},
		{"all of it", func(c *kafka.Connection) {
			c.ClientID, c.Version, c.Timeout = "shop", "3.6.2", time.Second
			c.TLS, c.SASL = &kafka.TLS{CA: "ca", Cert: "c", Key: "k", ServerName: "s"}, &sasl
		}, nil},
		{"no brokers", func(c *kafka.Connection) { c.Brokers = nil }, []string{"brokers", "kafka-1:9092"}},
		{"no port", func(c *kafka.Connection) { c.Brokers = []string{"kafka-1"} }, []string{"brokers", `"kafka-1"`, "missing port"}},
		{"no host", func(c *kafka.Connection) { c.Brokers = []string{":9092"} }, []string{"brokers", "host"}},
		{"bad port", func(c *kafka.Connection) { c.Brokers = []string{"k:http"} }, []string{"brokers", `port "http"`}},
		{"port 0", func(c *kafka.Connection) { c.Brokers = []string{"k:0"} }, []string{"brokers", `port "0"`}},
		{"a URL", func(c *kafka.Connection) { c.Brokers = []string{"kafka://k:9092"} }, []string{"brokers", "host:port"}},
		{"version", func(c *kafka.Connection) { c.Version = "v3" }, []string{"version", `"v3"`, "3.6"}},
		{"timeout", func(c *kafka.Connection) { c.Timeout = -1 }, []string{"timeout", "5s"}},
		{"long timeout", func(c *kafka.Connection) { c.Timeout = time.Hour }, []string{"timeout", "1m"}},
		{"cert alone", func(c *kafka.Connection) { c.TLS = &kafka.TLS{Cert: "c"} }, []string{"tls", "cert and key"}},
		{"key alone", func(c *kafka.Connection) { c.TLS = &kafka.TLS{Key: "k"} }, []string{"tls", "cert and key"}},
		{"insecure with ca", func(c *kafka.Connection) { c.TLS = &kafka.TLS{CA: "c", Insecure: true} }, []string{"tls", "ca and insecure"}},
		{"mechanism", func(c *kafka.Connection) { s := sasl; s.Mechanism = "scram"; c.SASL = &s }, []string{"sasl", "mechanism", "SCRAM-SHA-512"}},
		{"no user", func(c *kafka.Connection) { s := sasl; s.User = ""; c.SASL = &s }, []string{"sasl", "user"}},
		{"no password", func(c *kafka.Connection) { s := sasl; s.Password = ""; c.SASL = &s }, []string{"sasl", "password_file", "0 of them"}},
		{"two passwords", func(c *kafka.Connection) { s := sasl; s.PasswordEnv = "E"; c.SASL = &s }, []string{"sasl", "2 of them"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := good()
			c.change(&conn)
			err := conn.Validate()
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q has no %q", err, part)
				}
			}
		})
	}
}

func TestWithDefaults(t *testing.T) {
	c := good()
	if d := c.WithDefaults(); d.ClientID != "hotparam" || d.Timeout != 5*time.Second {
		t.Errorf("%+v", d)
	}
	c.ClientID, c.Timeout = "shop", time.Second
	if d := c.WithDefaults(); d.ClientID != "shop" || d.Timeout != time.Second {
		t.Errorf("%+v", d)
	}
}

func TestSecret(t *testing.T) {
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	t.Setenv("KAFKA_TEST_SECRET", "from env")
	t.Setenv("KAFKA_TEST_EMPTY", "")
	for _, c := range []struct {
		name string
		sasl kafka.SASL
		want string
		err  string
	}{
		{"literal", kafka.SASL{Password: "p"}, "p", ""},
		{"env", kafka.SASL{PasswordEnv: "KAFKA_TEST_SECRET"}, "from env", ""},
		{"file", kafka.SASL{PasswordFile: write("s3cret")}, "s3cret", ""},
		{"file with newline", kafka.SASL{PasswordFile: write("s3cret\n")}, "s3cret", ""},
		{"file of Windows", kafka.SASL{PasswordFile: write("s3cret\r\n")}, "s3cret", ""},
		{"two newlines", kafka.SASL{PasswordFile: write(" a\n\n")}, " a", ""},
		{"no file", kafka.SASL{PasswordFile: "/does/not/exist"}, "", "/does/not/exist"},
		{"empty file", kafka.SASL{PasswordFile: write("\n"), User: "bob"}, "", `user "bob"`},
		{"empty env", kafka.SASL{PasswordEnv: "KAFKA_TEST_EMPTY"}, "", "KAFKA_TEST_EMPTY"},
		{"none", kafka.SASL{}, "", "password_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.sasl.Secret()
			if got != c.want || (err == nil) != (c.err == "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q has no %q", err, c.err)
			}
		})
	}
}

func TestTLSConfig(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, "a")
	_, other := writePair(t, dir, "b")
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		tls  kafka.TLS
		err  []string
	}{
		{"system's", kafka.TLS{ServerName: "k"}, nil},
		{"all", kafka.TLS{CA: cert, Cert: cert, Key: key}, nil},
		{"insecure", kafka.TLS{Insecure: true}, nil},
		{"no ca", kafka.TLS{CA: "/none"}, []string{"ca:", "/none"}},
		{"bad ca", kafka.TLS{CA: text}, []string{"ca:", text, "BEGIN CERTIFICATE"}},
		{"no cert", kafka.TLS{Cert: "/none", Key: key}, []string{"cert:", "/none"}},
		{"no key", kafka.TLS{Cert: cert, Key: "/none"}, []string{"key:", "/none"}},
		{"another's key", kafka.TLS{Cert: cert, Key: other}, []string{cert, other, "pair"}},
		{"cert alone", kafka.TLS{Cert: cert}, []string{"cert and key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.tls.Config()
			if (err == nil) != (c.err == nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.err {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q has no %q", err, part)
				}
			}
			if err != nil {
				return
			}
			if (got.RootCAs != nil) != (c.tls.CA != "") || (len(got.Certificates) == 1) != (c.tls.Cert != "") ||
				got.InsecureSkipVerify != c.tls.Insecure || got.ServerName != c.tls.ServerName {
				t.Errorf("%+v of %+v", got, c.tls)
			}
		})
	}
}

// writePair writes a self-signed certificate and its key.
func writePair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	return write(name+".pem", "CERTIFICATE", der), write(name+"-key.pem", "PRIVATE KEY", keyDER)
}
