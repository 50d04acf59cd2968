//go:build real

package spoe

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
)

// With authorities for clients, only a HAProxy with one of their certificates is answered.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	testenv.MutualTLS(t, func(_ testing.TB, server *tls.Config) testenv.SecureDoor {
		f := serve(t, func(c *gateway.DoorConfig) { c.TLS = server }, termRule)
		ask := func(_ testing.TB, client *tls.Config) error {
			conn, err := tls.Dial("tcp", f.Addr, client)
			if err != nil {
				return err
			}
			defer conn.Close()
			hello := append(appendHead(nil, typeHAProxyHello, 0, 0), helloPayload(16380, true)...)
			putLength(hello)
			if _, err := conn.Write(hello); err != nil {
				return err
			}
			_, err = io.ReadFull(conn, make([]byte, lengthSize))
			return err
		}
		return testenv.SecureDoor{Addr: f.Addr, Ask: ask, NoTLS: func() int64 { return f.Closed("tls") }}
	})
}

// The real HAProxy presents its certificate and checks the door's, configured as on its page.
func TestHAProxyMutualTLS(t *testing.T) {
	t.Parallel()
	real.EachHAProxy(t, func(t *testing.T, program real.HAProxyProgram) {
		files := testenv.Certificates(t, "guard.internal")
		f := serve(t, func(c *gateway.DoorConfig) { c.TLS = files.Server(t) }, termRule)
		both := filepath.Join(t.TempDir(), "both.pem")
		for _, file := range []string{files.ClientCert, files.ClientKey} {
			appendFile(t, both, file)
		}
		app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(app.Close)
		options := real.Across(t, "haproxy.md", files, "/etc/hotparam/client-both.pem", both)
		h := program.StartChanged(t, "haproxy/spoe", map[string]string{`9134}" check`: `9134}" ` + strings.TrimSpace(options) + " check"},
			"HOTPARAM_TIMEOUT=10s", "APP="+strings.TrimPrefix(app.URL, "http://"), "HOTPARAM_SPOE="+f.Addr)
		f.Await("HAProxy's health check", func() bool { return f.door.healthchecks.Load() > 0 })
		c := client{t, h.Addr}
		if got := c.statuses(4, "/search?q=phone"); !slices.Equal(got, []int{200, 200, 200, 429}) {
			t.Errorf("%v", got)
		}
		if got := f.Closed("tls"); got != 0 {
			t.Errorf("%d connections without TLS", got)
		}
	})
}

// appendFile appends a file to another.
func appendFile(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		t.Fatal(err)
	}
}
