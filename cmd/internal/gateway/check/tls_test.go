package check

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
)

// A door with authorities for clients and a token answers clients that have both.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	testenv.MutualTLS(t, func(_ testing.TB, server *tls.Config) testenv.SecureDoor {
		f := open(t, gateway.DoorConfig{TLS: server, Token: "0123456789abcdef"})
		ask := func(tb testing.TB, config *tls.Config) error {
			client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
			status := func(token string) (int, error) {
				r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, "https://"+f.Addr+"/v1/check", strings.NewReader(`{"method": "GET", "uri": "/"}`))
				if err != nil {
					tb.Fatal(err)
				}
				r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
				response, err := client.Do(r)
				if err != nil {
					return 0, err
				}
				return response.StatusCode, response.Body.Close()
			}
			got, err := status(f.token)
			if err != nil {
				return err
			}
			if without, err := status(""); got != http.StatusOK || without != http.StatusUnauthorized || err != nil {
				return fmt.Errorf("%d with the token, and %d without (%w)", got, without, err)
			}
			return nil
		}
		return testenv.SecureDoor{Addr: f.Addr, Ask: ask, NoTLS: func() int64 { return f.Closed("tls") }}
	})
}
