package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A door with a certificate, authorities and a token in the file answers only clients that have
// both a certificate from these authorities and the token, and counts the others.
func TestGuardMutualTLS(t *testing.T) {
	files := testenv.Certificates(t)
	const token = "0123456789abcdef0123456789abcdef"
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	g := startGuard(t, guardFile(t, fmt.Sprintf(
		"guard: {auth: [{listen: %q, path: /forwarded, scheme: forwarded, cert: %q, key: %q, client_ca: %q, token_file: %q}]}",
		addr, files.ServerCert, files.ServerKey, files.CA, tokenFile)))
	ask := func(config *tls.Config, token string) (status int, err error) {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/forwarded", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"X-Hotparam-Token": {token}, "X-Forwarded-Method": {"GET"}, "X-Forwarded-Uri": {"/"}, "X-Forwarded-For": {"192.0.2.1"}}
		response, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	if status, err := ask(files.Config(t), token); err != nil || status != http.StatusOK {
		t.Errorf("with certificate and token: %d, %v", status, err)
	}
	if status, err := ask(files.Config(t), ""); err != nil || status != http.StatusUnauthorized {
		t.Errorf("without the token: %d, %v", status, err)
	}
	if status, err := ask(files.Expired(t), token); err == nil {
		t.Errorf("with a certificate that has expired: %d", status)
	}
	none := files.Config(t)
	none.Certificates = nil
	if status, err := ask(none, token); err == nil {
		t.Errorf("without a certificate: %d", status)
	}
	const refused = `hotparam_guard_closed_connections_total{door="auth",reason="tls"} 2`
	metrics := ""
	testenv.Eventually(t, "the refusals are counted", func() bool { // the client sees its refusal before that
		metrics = g.get("/metrics")
		return strings.Contains(metrics, refused)
	})
	for _, want := range []string{
		refused,
		`hotparam_guard_faults_total{door="auth",reason="unauthorized"} 1`,
		`hotparam_guard_checks_total{decision="passed",door="auth"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	if !strings.Contains(g.log.String(), "the TLS handshake failed") {
		t.Errorf("the log has no failed handshake:\n%s", g.log)
	}
}
