package auth

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// njsHarness gives the script what it uses of nginx, and prints what it does with a request.
const njsHarness = `
import hotparam from './hotparam.mjs';
globalThis.ngx = {fetch: fetch};
const [url, target, ...spoofed] = process.argv.slice(2);
const r = {
  method: 'GET', remoteAddress: '192.0.2.1', headersOut: {}, variables: {request_uri: target, hotparam_url: url},
  headersIn: Object.fromEntries(spoofed.map(h => h.split(': '))),
  warn: text => console.log('warned', text.split(':')[0]),
  return: (status, body) => console.log(status, JSON.stringify(r.headersOut), body.trim()),
};
await hotparam.access(r);
console.log('done');
`

// The script for njs runs in Node here, since Debian's njs is too old for js_access: it hands
// refusals on, lets requests pass if hotparam is away, and sends no header of a client as its
// own.
func TestNJSScript(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node in PATH: install Node.js (Debian: apt-get install nodejs)")
	}
	dir := t.TempDir()
	script, err := os.ReadFile("../../../deploy/gateways/nginx-njs/hotparam.js")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"hotparam.mjs": string(script), "run.mjs": njsHarness} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, oneEach, Config{})
	run := func(url, target string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, "run.mjs", url, target, "x-original-uri: /nothing", "X-Real-IP: 203.0.113.1", "x-tenant: acme")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	url := "http://" + f.addr + "/original"
	if got := run(url, "/search?q=a%20b"); got != "done\n" {
		t.Errorf("a request that passes: %s", got)
	}
	got := run(url, "/search?q=a+b")
	if !strings.HasPrefix(got, "429 {") || !strings.Contains(got, `"Retry-After":`) || !strings.Contains(got, `"RateLimit":`) || !strings.Contains(got, "quota-exceeded") {
		t.Errorf("a request that is refused: %s", got)
	}
	if got := f.door.Stats().Ambiguous; got != 0 {
		t.Errorf("stats: %d requests had a client's headers beside those of the script", got)
	}
	f.stop()
	if got := run(url, "/search?q=a+b"); got != "warned hotparam does not answer\ndone\n" {
		t.Errorf("hotparam is away: %s", got)
	}
}
