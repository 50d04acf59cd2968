package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

const guardRules = `namespace: shop
aggregator: {redis: "redis://127.0.0.1:1"}
%s
rules:
  - {id: search, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1}}
  - {id: me, match: {route: "GET /me"}, by: ["ctx:user"], limit: {rate: 1/1h, burst: 1}}
`

func guardFile(t *testing.T, section string) string {
	return write(t, fmt.Sprintf(guardRules, section))
}

func TestGuardDryRun(t *testing.T) {
	plain := guardFile(t, "")
	open := guardFile(t, `guard: {check: {listen: ":1", token_env: HOTPARAM_NO_SUCH_TOKEN}}`)
	for _, test := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"--config", plain, "--rls", "127.0.0.1:1", "--spoe", "unix:/x.sock"}, exitUnreachable, []string{"is Redis running at redis://127.0.0.1:1?", "good, 2 rules", "rls 127.0.0.1:1, spoe unix:/x.sock", "HTTP 127.0.0.1:9126"}},
		{[]string{"--config", plain}, exitUsage, []string{"no door is open", "--check"}},
		{[]string{"--config", plain, "--auth", "9132"}, exitUsage, []string{"--auth", "host:port or unix:PATH"}},
		{[]string{"--config", plain, "--auth", ":9132"}, exitConfig, []string{"guard.auth", "anybody may ask"}},
		{[]string{"--config", plain, "--rls", "127.0.0.1:9126"}, exitConfig, []string{"both listen on"}},
		{[]string{"--config", open}, exitConfig, []string{"guard.check: token", "HOTPARAM_NO_SUCH_TOKEN"}},
		{[]string{}, exitUsage, []string{"--config is missing"}},
	} {
		hotparamCommand(t, append([]string{"guard", "--dry-run"}, test.args...)...).exits(t, test.code, test.want...)
	}
}

// runningGuard is a guard that runs in this process.
type runningGuard struct {
	t      *testing.T
	log    *testenv.LogBuffer
	socket string // socket of its door for programs
	http   string
	client http.Client
	stop   func() int
}

func startGuard(t *testing.T, path string, flags ...string) *runningGuard {
	t.Helper()
	g := &runningGuard{t: t, log: new(testenv.LogBuffer), socket: filepath.Join(t.TempDir(), "check.sock")}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	args := append([]string{"guard", "--config", path, "--http", "127.0.0.1:0", "--check", "unix:" + g.socket}, flags...)
	go func() { code <- run(ctx, args, streams{in: strings.NewReader(""), out: io.Discard, err: g.log}) }()
	g.stop = func() int {
		cancel()
		n := <-code
		code <- n
		return n
	}
	t.Cleanup(func() { g.stop() })
	up := regexp.MustCompile(` http=(\S+)`)
	for end := time.Now().Add(20 * time.Second); g.http == ""; time.Sleep(5 * time.Millisecond) {
		if found := up.FindStringSubmatch(g.log.String()); found != nil {
			g.http = "http://" + found[1]
		}
		if time.Now().After(end) || len(code) > 0 {
			t.Fatalf("the guard did not come up:\n%s", g.log)
		}
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "door:80" {
			network, address = "unix", g.socket
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	g.client = http.Client{Transport: transport, Timeout: 20 * time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	return g
}

// get returns a page of --http.
func (g *runningGuard) get(path string) string {
	g.t.Helper()
	response, err := g.client.Get(g.http + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return response.Status + " " + string(text)
}

// passes asks the check door, and reports whether the request may pass.
func (g *runningGuard) passes(question string) bool {
	g.t.Helper()
	response, err := g.client.Post("http://door/v1/check", "application/json", strings.NewReader(question))
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		g.t.Fatalf("%s %s %v", response.Status, text, err)
	}
	return strings.HasPrefix(string(text), `{"allowed":true,`)
}

// A guard without Redis decides, reports its state, reloads its file and shuts down cleanly.
func TestGuard(t *testing.T) {
	path := guardFile(t, "")
	g := startGuard(t, path, "--auth", "127.0.0.1:0", "--rls", "127.0.0.1:0", "--spoe", "127.0.0.1:0")
	for _, question := range []string{`{"method": "GET", "uri": "/search?q=a"}`, `{"method": "GET", "uri": "/me", "context": {"user": "a"}}`} {
		if !g.passes(question) || g.passes(question) {
			t.Errorf("%s: want the first to pass alone", question)
		}
	}
	if got := g.get("/-/healthy"); got != "200 OK healthy\n" {
		t.Error(got)
	}
	if got := g.get("/-/ready"); !strings.HasPrefix(got, "200 OK ready, but Redis is unavailable") {
		t.Error(got)
	}
	metrics := g.get("/metrics")
	for _, want := range []string{
		`hotparam_guard_checks_total{decision="refused",door="check"} 2`, `hotparam_guard_checks_total{decision="passed",door="rls"} 0`,
		`hotparam_app_requests_total{decision="limited",rule="search"} 1`, "hotparam_http_connections ", "hotparam_build_info{",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	// A rule that names another parameter of the context needs no restart.
	text := strings.ReplaceAll(fmt.Sprintf(guardRules, ""), "ctx:user", "ctx:plan")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	question := `{"method": "GET", "uri": "/me", "context": {"plan": "free"}}`
	testenv.Eventually(t, "the changed rule is in force", func() bool { return !g.passes(question) }, g.log)
	if code := g.stop(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, g.log)
	}
	if _, err := os.Stat(g.socket); err == nil {
		t.Error("the socket is still there")
	}
	for _, want := range []string{"guard is up", "guard has drained"} {
		if !strings.Contains(g.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, g.log)
		}
	}
}

// A change to section guard is reported once, with its fields, and takes effect only after a
// restart. Rules in the same file take effect at once.
func TestGuardSectionChanges(t *testing.T) {
	t.Parallel()
	path := guardFile(t, `guard: {ticket_age: 30s}`)
	g := startGuard(t, path)
	await := func(what string, condition func() bool) {
		t.Helper()
		testenv.Eventually(t, what, condition, g.log)
	}
	replace := func(section, old, now string) {
		t.Helper()
		text := strings.ReplaceAll(fmt.Sprintf(guardRules, section), old, now)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if metrics := g.get("/metrics"); !strings.Contains(metrics, "\nhotparam_guard_restart_needed 0\n") {
		t.Error("/metrics has no hotparam_guard_restart_needed 0")
	}
	const fields = `fields=rls.listen,ticket_age`
	replace(`guard: {ticket_age: 45s, rls: {listen: "127.0.0.1:1"}}`, "ctx:user", "ctx:plan")
	await("the change", func() bool { return strings.Contains(g.log.String(), fields) })
	if got := g.get("/-/ready"); !strings.Contains(got, "a restart would change these fields of section guard: rls.listen, ticket_age") {
		t.Error(got)
	}
	if metrics := g.get("/metrics"); !strings.Contains(metrics, "\nhotparam_guard_restart_needed 1\n") || strings.Contains(metrics, `door="rls"`) {
		t.Errorf("the change is not told, or half in force:\n%s", metrics)
	}
	question := `{"method": "GET", "uri": "/me", "context": {"plan": "free"}}`
	await("the changed rule", func() bool { return !g.passes(question) })
	// Another change of the rules does not repeat the report. A door opened by flags does not count
	// as a change.
	replace(`guard: {ticket_age: 45s, rls: {listen: "127.0.0.1:1"}, check: {listen: "127.0.0.1:2"}}`, "ctx:user", "ctx:team")
	await("the next change", func() bool { return strings.Count(g.log.String(), "rules are in force") == 2 })
	replace(`guard: {ticket_age: 30s}`, "", "")
	await("the end of it", func() bool { return strings.Contains(g.log.String(), "again the one that the guard started with") })
	if got := g.get("/-/ready"); strings.Contains(got, "restart") {
		t.Error(got)
	}
	if n := strings.Count(g.log.String(), "section guard of the file has changed"); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, g.log)
	}
}

// A socket left by a killed guard is replaced. A socket in use is not.
func TestGuardSockets(t *testing.T) {
	path := guardFile(t, "")
	socket := filepath.Join(t.TempDir(), "spoe.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	g := startGuard(t, path, "--spoe", "unix:"+socket)
	r := hotparamCommand(t, "guard", "--config", path, "--http", "127.0.0.1:0", "--spoe", "unix:"+socket)
	r.exits(t, exitFailure, "door spoe", "in use")
	if !g.passes(`{"method": "GET", "uri": "/"}`) {
		t.Error("the first guard is disturbed")
	}
}

// Requests whose end is never reported hold a bounded number of tickets for a bounded time. Their
// permits are released, and the metrics count them.
func TestGuardTicketsNeverEnded(t *testing.T) {
	t.Parallel()
	path := guardFile(t, "guard: {max_tickets: 3, ticket_age: 1s}")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "  - {id: slots, match: {route: \"GET /slow\"}, limit: {concurrency: 4}}\n"...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	g := startGuard(t, path)
	const slow = `{"method": "GET", "uri": "/slow", "hold": true}`
	for n := range 10 { // three tickets fit, and a fourth request could not be ended
		if got := g.passes(slow); got != (n < 3) {
			t.Errorf("request %d passes: %v", n, got)
		}
	}
	metric := func(line string) bool { return strings.Contains(g.get("/metrics"), line+"\n") }
	if !metric(`hotparam_guard_tickets{door="check"} 3`) || !metric(`hotparam_guard_tickets_total{door="check",end="full"} 7`) {
		t.Errorf("want 3 tickets to be held, and 7 to be told:\n%s", g.get("/metrics"))
	}
	testenv.Eventually(t, "the tickets expire", func() bool { return metric(`hotparam_guard_tickets_total{door="check",end="expired"} 3`) })
	if !metric(`hotparam_guard_tickets{door="check"} 0`) {
		t.Error("tickets are held still")
	}
	for n := range 3 {
		if !g.passes(slow) {
			t.Errorf("request %d after the age is refused", n)
		}
	}
	for _, want := range []string{"too many in-flight requests", "the end of requests was not reported"} {
		if !strings.Contains(g.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, g.log)
		}
	}
}
