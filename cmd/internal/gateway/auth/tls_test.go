//go:build real

package auth

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

const testToken = "0123456789abcdef0123456789abcdef"

// A door with authorities for clients and a token answers clients that have both.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	testenv.MutualTLS(t, func(_ testing.TB, server *tls.Config) testenv.SecureDoor {
		f := open(t, oneEach, gateway.DoorConfig{TLS: server, Token: testToken})
		ask := func(_ testing.TB, client *tls.Config) error {
			for _, token := range []string{testToken, ""} {
				conn, err := tls.Dial("tcp", f.Addr, client)
				if err != nil {
					return err
				}
				defer conn.Close()
				if _, err := fmt.Fprintf(conn, "GET /original HTTP/1.1\r\nHost: a\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\nX-Real-IP: 192.0.2.1\r\nX-Hotparam-Token: %s\r\n\r\n", token); err != nil {
					return err
				}
				line := make([]byte, len("HTTP/1.1 200"))
				if _, err := conn.Read(line); err != nil {
					return err
				}
				if got := strings.HasSuffix(string(line), "200"); got != (token != "") {
					return fmt.Errorf("token %q: %s", token, line)
				}
			}
			return nil
		}
		return testenv.SecureDoor{Addr: f.Addr, Ask: ask, NoTLS: func() int64 { return f.Closed("tls") }}
	})
}

// across holds, for each gateway, the change that its page prescribes for a hotparam on another
// machine: the text that the block of the section "Across machines" replaces.
var across = map[string]struct {
	page, replaces string
	hasToken       bool
}{
	"nginx":   {page: "nginx.md", replaces: "  proxy_pass http://hotparam/nginx;\n", hasToken: true},
	"caddy":   {page: "caddy.md", replaces: "\t\tforward_auth {args[0]} {\n\t\t\turi /forwarded\n\t\t\ttransport http {\n", hasToken: true},
	"traefik": {page: "traefik.md", replaces: "        address: http://127.0.0.1:9132/forwarded\n"},
	"envoy":   {page: "envoy-extauthz.md", replaces: "    - name: hotparam\n"},
}

// Real gateways present their certificates and check the door's, configured as on their pages.
func TestRealMutualTLS(t *testing.T) {
	for name, how := range across {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := testenv.Certificates(t, "guard.internal")
			for _, expired := range []bool{false, true} {
				d := gatewaytest.Open(t, oneEach, hotparam.WithMiddleware(middleware.WithHeaders())).Decider(t, gateway.Config{})
				c := gateway.DoorConfig{TLS: files.Server(t)}
				if how.hasToken {
					c.Token = testToken
				}
				s := &setup{app: startApplication(t), fixture: serve(t, d, c)}
				shown := files
				if expired {
					shown.ClientCert, shown.ClientKey = files.ExpiredCert, files.ExpiredKey
				}
				block := real.Across(t, how.page, shown, "guard.internal:9132", s.Addr, "{env.HOTPARAM_TOKEN}", testToken, "TOKEN", testToken)
				values := map[string]string{application0: s.app.addr, door0: s.Addr, how.replaces: block}
				if timeout := realGateways[name].timeout; timeout != "" {
					values[timeout] = "20s"
				}
				s.gateway = realGateways[name].start(t, values)
				if !expired {
					s.expect("with a certificate", "/search?q=1", http.StatusOK, http.StatusTooManyRequests)
				} else if realGateways[name].failsClosed {
					s.expect("with one that has expired", "/search?q=1", http.StatusInternalServerError)
				} else {
					s.expect("with one that has expired", "/search?q=1", http.StatusOK, http.StatusOK)
				}
				if got := s.Figures(); (got.Closed["tls"] > 0) != expired || got.Faults[gateway.Unauthorized] > 0 || (got.Passed > 0) == expired {
					t.Errorf("expired %v: %+v; the log:\n%s", expired, got, s.Log)
				}
			}
		})
	}
}
