package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

const operateToken = "0123456789abcdef0123456789abcdef"

// operating is a running `hotparam operate`.
type operating struct {
	t      *testing.T
	log    *testenv.LogBuffer
	url    string
	client *http.Client
}

// people writes a file of tokens.
func people(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "people")
	if err := os.WriteFile(path, []byte("ann "+operateToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func startOperate(t *testing.T, transport *http.Transport, args ...string) *operating {
	t.Helper()
	o := &operating{t: t, log: new(testenv.LogBuffer), client: &http.Client{Transport: transport, Timeout: 20 * time.Second}}
	ctx, stop := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"operate"}, args...), streams{in: strings.NewReader(""), out: io.Discard, err: o.log})
	}()
	t.Cleanup(func() {
		o.client.CloseIdleConnections()
		stop()
		if got := <-code; got != exitOK {
			t.Errorf("exit code %d:\n%s", got, o.log)
		}
	})
	testenv.Eventually(t, "operate is up", func() bool {
		found := regexp.MustCompile(` url=(\S+)`).FindStringSubmatch(o.log.String())
		if found != nil {
			o.url = strings.Replace(found[1], "[::]", "127.0.0.1", 1)
		}
		return found != nil || len(code) > 0
	})
	testenv.Eventually(t, "operate is ready", func() bool { status, _ := o.send(http.MethodGet, "/-/ready", nil); return status == http.StatusOK })
	return o
}

// send sends a request, with ann's token unless the headers have another.
func (o *operating) send(method, path string, body any, headers ...string) (int, map[string]any) {
	o.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		o.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(o.t.Context(), method, o.url+path, bytes.NewReader(text))
	if err != nil {
		o.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Hotparam-Act", "1")
	resp, err := o.client.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := make(map[string]any)
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	return resp.StatusCode, answer
}

// act makes an order in both steps.
func (o *operating) act(key, action string, headers ...string) (map[string]any, map[string]any) {
	o.t.Helper()
	status, confirmation := o.send(http.MethodPost, "/api/v1/act/confirmation", map[string]any{"key": key, "action": action}, headers...)
	if status != http.StatusOK {
		o.t.Fatalf("%s %s: %d %v", action, key, status, confirmation)
	}
	status, control := o.send(http.MethodPost, "/api/v1/act", map[string]any{"confirmation": confirmation["confirmation"], "for": "10m", "why": "INC-7"}, headers...)
	if status != http.StatusOK {
		o.t.Fatalf("%s %s: %d %v", action, key, status, control)
	}
	return confirmation, control
}

// It does not start without people, and off loopback not without TLS. Each refusal says what to
// give.
func TestOperateRefusesToStart(t *testing.T) {
	files := testenv.Certificates(t)
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte(operateToken+" ann"), 0o600); err != nil {
		t.Fatal(err)
	}
	redis := "redis://" + unreachable(t)
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nobody":                {nil, exitUsage, "Give --tokens FILE"},
		"off loopback":          {[]string{"--tokens", people(t), "--http", ":0", "--redis", redis}, exitUsage, "needs TLS: give --cert FILE and --key FILE"},
		"one half":              {[]string{"--tokens", people(t), "--cert", files.ServerCert}, exitUsage, "--cert and --key: one is missing"},
		"no TLS":                {[]string{"--client-ca", files.CA}, exitUsage, "--client-ca needs --cert and --key"},
		"another's certificate": {[]string{"--tokens", people(t), "--cert", files.ServerCert, "--key", files.ClientKey}, exitConfig, "private key"},
		"a bad file":            {[]string{"--tokens", bad}, exitConfig, "line 1: the token has 3 bytes"},
		"no file":               {[]string{"--tokens", bad + "x"}, exitConfig, "no such file"},
		"an address":            {[]string{"--tokens", people(t), "--http", "9128"}, exitUsage, "want host:port"},
	} {
		r := hotparamCommand(t, append([]string{"operate"}, test.args...)...)
		r.exits(t, test.code, test.want)
		if strings.Contains(r.err, operateToken) {
			t.Errorf("%s: the message has a token: %s", name, r.err)
		}
	}
}

// operatorURL creates a user of Redis with the rights of docs/REDIS.md, and returns its URL.
func operatorURL(t *testing.T, server string) string {
	t.Helper()
	admin, err := hotkeys.NewClient(server)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	words := []any{"ACL", "SETUSER", "operate", "on", ">pass", "%R~hotparam:{shop}:*", "~hotparam:{shop}:control", "~hotparam:{shop}:control:events", "resetchannels", "&hotparam:{shop}:control"}
	for _, command := range published.OperatorCommands {
		words = append(words, "+"+command)
	}
	if err := admin.Do(t.Context(), words...).Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(server, "redis://", "redis://operate:pass@", 1)
}

// An order reaches Redis with its author and reason, an instance obeys within a second, and the
// event is listed.
func TestOperate(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	path := write(t, "namespace: shop\nrules:\n  - {id: terms, match: {route: \"GET /search\"}, by: [q], hot: 50/1s, limit: 10/s}\n  - {id: seen, match: {route: \"GET /seen\"}, by: [q], hot: 50/1s}\n")
	tokens := people(t)
	o := startOperate(t, new(http.Transport), "--tokens", tokens, "--http", "127.0.0.1:0", "--redis", operatorURL(t, server.URL()), "--config", path)
	ann := []string{"Authorization", "Bearer " + operateToken}
	if status, answer := o.send(http.MethodPost, "/api/v1/act/confirmation", map[string]any{"key": "GET /search?q=phone", "action": "block"}, ann...); status != http.StatusBadRequest || !strings.Contains(answer["error"].(string), "none would obey") {
		t.Errorf("without an instance: %d %v", status, answer)
	}
	instanceIn(t, server.URL(), "shop", 0)
	testenv.Eventually(t, "the instance is seen", func() bool {
		status, _ := o.send(http.MethodPost, "/api/v1/act/confirmation", map[string]any{"key": "GET /search?q=phone", "action": "block"}, ann...)
		return status == http.StatusOK
	})
	confirmation, control := o.act("GET /search?q=phone", "block", ann...)
	if confirmation["rule"] != "terms" || !strings.HasPrefix(confirmation["effect"].(string), "Not known: the key is not hot") || !strings.Contains(confirmation["note"].(string), "is it the key of its requests?") || control["claimed"] != "ann" {
		t.Errorf("%v\n%v", confirmation, control)
	}
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	controls, err := hotkeys.ListControls(t.Context(), client, "shop")
	if err != nil || len(controls) != 1 || controls[0].Action != published.ControlBlock || controls[0].By != "operate" || controls[0].Claimed != "ann" || controls[0].Why != "INC-7" || controls[0].Text != "GET /search?q=phone" {
		t.Fatalf("%+v, %v", controls, err)
	}
	for key, want := range map[string]string{"seen GET /seen?q=x": "has no limit with a number", "GET /nowhere?q=x": "no rule of the file makes such a key", "terms GET /search?q=*": "is a pattern"} {
		if status, answer := o.send(http.MethodPost, "/api/v1/act/confirmation", map[string]any{"key": key, "action": "pin"}, ann...); status != http.StatusBadRequest || !strings.Contains(answer["error"].(string), want) {
			t.Errorf("%s: %d %v", key, status, answer)
		}
	}
	testenv.Eventually(t, "the page has the control", func() bool {
		status, _ := o.send(http.MethodPost, "/api/v1/act/confirmation", map[string]any{"key": "terms GET /search?q=phone", "action": "release"}, ann...)
		return status == http.StatusOK
	})
	if _, released := o.act("terms GET /search?q=phone", "release", ann...); released["action"] != "block" {
		t.Errorf("%v", released)
	}
	if status, answer := o.send(http.MethodGet, "/api/v1/instances", nil, ann...); status != http.StatusOK {
		t.Errorf("the members, with the rights of an operator: %d %v", status, answer)
	}
	const past = "/api/v1/history?from=1&to=9"
	if status, answer := o.send(http.MethodGet, past, nil, ann...); status != http.StatusServiceUnavailable || !strings.Contains(answer["error"].(string), "the history cannot be read: NOPERM") {
		t.Errorf("the history, which needs another right: %d %v", status, answer)
	}
	if status, _ := o.send(http.MethodGet, past, nil); status != http.StatusUnauthorized {
		t.Errorf("the history without a token: %d", status)
	}
	if status, _ := o.send(http.MethodPost, "/api/v1/act", nil); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	if text := o.log.String(); strings.Contains(text, operateToken) || strings.Count(text, "an action\" author=ann") != 2 {
		t.Errorf("the log:\n%s", text)
	}
	watched := hotparamCommand(t, "list", "--controls", "--redis", server.URL(), "--namespace", "shop")
	watched.exits(t, exitOK)
	// A changed file of tokens is read, and one that cannot be used changes nothing.
	const bobs = "fedcba9876543210fedcba9876543210"
	status := func(token string) int {
		status, _ := o.send(http.MethodGet, "/api/v1/hot", nil, "Authorization", "Bearer "+token)
		return status
	}
	if err := os.WriteFile(tokens, []byte("bob "+bobs+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the file is read", func() bool { return strings.Contains(o.log.String(), "the file of tokens has been read") })
	if bob, ann := status(bobs), status(operateToken); bob != http.StatusOK || ann != http.StatusUnauthorized {
		t.Errorf("bob, who has a line now, gets %d, and ann, who has none, %d", bob, ann)
	}
	if err := os.WriteFile(tokens, []byte("bob\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the file is refused", func() bool { return strings.Contains(o.log.String(), "the same people as before may act") })
	if got := status(bobs); got != http.StatusOK {
		t.Errorf("with a file that is wrong bob gets %d", got)
	}
}

// Off loopback it speaks TLS, and the certificate of a person is the author.
func TestOperateByCertificates(t *testing.T) {
	server := testenv.Redis(t)
	files := testenv.Certificates(t, "operate.example")
	instanceIn(t, server.URL(), "shop", 0)
	o := startOperate(t, &http.Transport{TLSClientConfig: files.Config(t)},
		"--client-ca", files.CA, "--http", ":0", "--cert", files.ServerCert, "--key", files.ServerKey, "--redis", server.URL(), "--namespace", "shop")
	if !strings.HasPrefix(o.url, "https://") {
		t.Fatal(o.url)
	}
	_, control := o.act("terms GET /search?q=phone", "block")
	if subject, _ := control["claimed"].(string); subject != "CN=client" {
		t.Errorf("%v", control)
	}
	var session map[string]any
	if _, session = o.send(http.MethodGet, "/api/v1/session", nil); session["may_act"] != true || session["token"] != false || session["author"] != control["claimed"] {
		t.Errorf("%v", session)
	}
	none := files.Config(t)
	none.Certificates = nil
	for name, conf := range map[string]*tls.Config{"an expired certificate": files.Expired(t), "no certificate": none} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
		if resp, err := client.Get(o.url + "/api/v1/session"); err == nil {
			resp.Body.Close()
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	// The names of the certificate are the server's.
	for host, want := range map[string]int{"operate.example": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.url+"/api/v1/session", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := o.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s", host, resp.Status)
		}
	}
}
