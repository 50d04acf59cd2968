package hotparam

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No redacted value is in any byte that is sent. A new key is used from the next Reload on.
func TestRedact(t *testing.T) {
	r := receive(t)
	key := filepath.Join(t.TempDir(), "redact.key")
	write := func(text string) {
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("0123456789abcdef\n")
	const rule = `{id: keys, match: {route: GET /search}, by: ["header:x-api-key"], hot: 200/s, limit: {rate: 1/h, burst: 1}, block: {"header:x-api-key": stolen}}`
	f := open(t, "secrets: {redact: [\"header:x-api-key\"], redact_key_file: "+key+"}\n"+shop("redis://"+nowhere(t), r.addr(), rule))
	send := func(value string) int {
		w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/search?q=1", http.NoBody)
		req.Header.Set("X-Api-Key", value)
		f.handler.ServeHTTP(w, req)
		return w.Code
	}
	if ok, stolen := send("HUSH1"), send("stolen"); ok != http.StatusOK || stolen != http.StatusForbidden {
		t.Errorf("status %d, and %d for a blocked value", ok, stolen)
	}
	before := f.Stats().Rules.RedactKey
	write("short")
	if err := f.Reload(); err == nil || !strings.Contains(err.Error(), "5 bytes, want 16 at least") {
		t.Errorf("a short key: %v", err)
	}
	write("fedcba9876543210\n")
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if after := f.Stats().Rules.RedactKey; before == "" || before == after {
		t.Errorf("key id %q and then %q", before, after)
	}
	send("HUSH1")
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.await("the counts", func() bool { return strings.Count(r.log.String(), "x-api-key=hmac-") == 2 })
	// The values are HMAC-SHA256 of header:x-api-key=HUSH1 under both keys, computed with OpenSSL.
	for _, want := range []string{"hmac-45eeca3e21e1ba8a086f04b7b7c7011c", "hmac-cb31aef074f036b49a9444e8968d329c"} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("%s was not sent:\n%s", want, r.log.String())
		}
	}
	if strings.Contains(r.log.String(), "HUSH") || strings.Contains(f.log.String(), "HUSH") {
		t.Errorf("a value left the process:\n%s\n%s", r.log.String(), f.log)
	}
}
