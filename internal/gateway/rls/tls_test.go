package rls

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/hotparam/hotparam/internal/testenv"
)

// With authorities for clients, only a client with a certificate of theirs is answered.
func TestMutualTLS(t *testing.T) {
	files := testenv.Certificates(t)
	pair, err := tls.LoadX509KeyPair(files.ServerCert, files.ServerKey)
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	f := open(t, file(t, searchRule), func(c *Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	})
	known := files.Config(t)
	stranger := known.Clone()
	stranger.Certificates = nil
	for name, c := range map[string]*tls.Config{"known": known, "stranger": stranger} {
		conn, err := grpc.NewClient("passthrough:///"+f.addr, grpc.WithTransportCredentials(credentials.NewTLS(c)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/"))})
		if (err == nil) != (name == "known") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.client.ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/"))}); err == nil {
		t.Error("a call in plain text is answered")
	}
}
