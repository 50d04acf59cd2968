//go:build real

package rls

import (
	"crypto/tls"
	"maps"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
)

// With authorities for clients, only a client with one of their certificates is answered.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	testenv.MutualTLS(t, func(_ testing.TB, server *tls.Config) testenv.SecureDoor {
		f := open(t, []string{searchRule}, func(c *gateway.DoorConfig) { c.TLS = server })
		ask := func(tb testing.TB, client *tls.Config) error {
			conn, err := grpc.NewClient("passthrough:///"+f.Addr, grpc.WithTransportCredentials(credentials.NewTLS(client)))
			if err != nil {
				tb.Fatal(err)
			}
			defer conn.Close()
			_, err = ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(tb.Context(), &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/"))})
			return err
		}
		return testenv.SecureDoor{Addr: f.Addr, Ask: ask, NoTLS: func() int64 { return f.Closed("tls") }}
	})
}

// The real Envoy presents its certificate and checks the door's, configured as on its page.
func TestEnvoyMutualTLS(t *testing.T) {
	t.Parallel()
	files := testenv.Certificates(t, "guard.internal")
	changes := map[string]string{"    - name: hotparam\n": real.Across(t, "envoy.md", files)}
	maps.Copy(changes, patient)
	e := startEnvoy(t, []string{searchRule}, changes, func(c *gateway.DoorConfig) { c.TLS = files.Server(t) })
	for n, want := range []int{200, 200, 429} {
		if got := e.get("/search?q=tls"); got.status != want {
			t.Errorf("request %d: %+v, want %d", n, got, want)
		}
	}
	if got := e.Closed("tls"); got != 0 {
		t.Errorf("%d connections without TLS; the log:\n%s", got, e.Log)
	}
}
