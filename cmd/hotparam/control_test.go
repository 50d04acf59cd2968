package main

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

const controlRules = `namespace: shop
rules:
  - {id: terms, match: {route: "GET /search"}, by: [q], hot: 50/1s, limit: {rate: 5/1s, burst: 5}}
  - {id: pages, match: {route: "GET /search"}, by: [page], hot: 50/1s}
  - {id: both, match: {route: "GET /items"}, by: all, hot: 50/1s, limit: {rate: 5/1s, burst: 5}}
  - {id: items, match: {route: "GET /items"}, by: [q], hot: 50/1s, limit: {rate: 5/1s, burst: 5}}
`

// This runs operators' commands on a key that is not hot, up to its release.
func TestControlCommands(t *testing.T) {
	server := testenv.Redis(t)
	t.Setenv("HOTPARAM_REDIS", server.URL())
	path := write(t, controlRules)
	at := func(words ...string) result { return hotparamCommand(t, append(words, "--config", path)...) }
	instanceIn(t, server.URL(), "shop", 0)

	r := at("block", "GET /search?q=phone", "--for", "10m", "--why", "a scraper")
	r.exits(t, exitOK, "is not hot in namespace shop now")
	if !strings.HasPrefix(r.out, "blocked GET /search?q=phone (rule terms) in namespace shop until ") || !strings.Contains(r.out, "Redis user default; reported by ") {
		t.Errorf("%q", r.out)
	}
	// The key is given as list prints it, and without the file, since it has a control now.
	r = hotparamCommand(t, "pin", "terms", " GET", "/search?q=phone", "--namespace", "shop", "--for", "1h", "--json")
	r.exits(t, exitOK)
	var set struct {
		Namespace string
		listed.Control
	}
	decodeJSON(t, r.out, &set)
	if left := time.Until(set.Until); set.Namespace != "shop" || set.Action != "pin" || set.Rule != "terms" || left < 59*time.Minute || left > 61*time.Minute {
		t.Errorf("%+v", set)
	}
	r = hotparamCommand(t, "list", "--controls", "--namespace", "shop")
	r.exits(t, exitOK)
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[1], "pin ") || !strings.HasSuffix(lines[1], "terms  GET /search?q=phone") {
		t.Errorf("%q", r.out)
	}
	at("allow", "GET /items?q=x", "--for", "1m").exits(t, exitUsage, "a key of 2 rules", "'both GET /items?q=x'", "'items GET /items?q=x'")
	at("allow", "items GET /items?q=x", "--for", "1m").exits(t, exitOK)
	at("pin", "GET /search?page=2", "--for", "1m").exits(t, exitUsage, `rule "pages" has no limit`, "hotparam block")
	at("block", "GET /search?q=*", "--for", "1m").exits(t, exitUsage, "is a pattern", "except")
	at("block", "GET /none?q=x", "--for", "1m").exits(t, exitUsage, "no rule of the file makes such a key")
	at("block", "other GET /search?q=x", "--for", "1m").exits(t, exitUsage, `no rule "other"`)
	at("block", "GET /search?q=x").exits(t, exitUsage, "--for is missing")
	at("block", "GET /search?q=x", "--for", "25h").exits(t, exitUsage, "--for 25h", "at most 24h")
	at("block", "GET /search?q=x", "--for", "1m", "--why", strings.Repeat("x", 300)).exits(t, exitUsage, "--why has 300 bytes")
	hotparamCommand(t, "block", "GET /search?q=x", "--namespace", "shop", "--for", "1m").exits(t, exitUsage, "put its rule before it")

	at("release", "GET /search?q=other").exits(t, exitFailure, "has no control", "list --controls")
	r = at("release", "GET /search?q=phone")
	r.exits(t, exitOK)
	if !strings.HasPrefix(r.out, "released GET /search?q=phone (rule terms) in namespace shop. Its pin would have ended at ") {
		t.Errorf("%q", r.out)
	}
	at("release", "GET /search?q=phone").exits(t, exitFailure, "has no control")

	t.Setenv("HOTPARAM_REDIS", "redis://"+unreachable(t))
	at("block", "GET /search?q=phone", "--for", "10m").exits(t, exitUnreachable, "is Redis running")
}

// An operator without the rights gets an error that names them.
func TestControlWithoutRights(t *testing.T) {
	server := testenv.Redis(t)
	admin, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">geheim", "%R~hotparam:{shop}:*", "+@read", "+@connection", "+@transaction", "+time", "+eval", "+evalsha").Err(); err != nil {
		t.Fatal(err)
	}
	instanceIn(t, server.URL(), "shop", 0)
	t.Setenv("HOTPARAM_REDIS", strings.Replace(server.URL(), "redis://", "redis://reader:geheim@", 1))
	r := hotparamCommand(t, "block", "terms GET /search?q=phone", "--namespace", "shop", "--for", "10m")
	r.exits(t, exitFailure, "hotparam-operator", "docs/REDIS.md")
	if strings.Contains(r.err, "geheim") {
		t.Errorf("stderr has the password: %q", r.err)
	}
}

// Members whose rules differ from the aggregator's are marked.
func TestMembersThatDiffer(t *testing.T) {
	offset := -3.4
	rows := listed.MemberRows([]listed.Member{
		{Name: "agg-1", Role: "aggregator", RulesVersion: "v2", Heard: time.Now(), OffsetMillis: &offset, MemoryUsed: 3 << 20, MemoryMax: 64 << 20},
		{Name: "api-1", Role: "instance", RulesVersion: "v1", Heard: time.Now(), Held: 12, HeldSince: time.Now().Add(-3 * time.Minute)},
		{Name: "api-2", Role: "instance", RulesVersion: "v1", Heard: time.Now(), Problem: "line 3: bad"},
		{Name: "api-3", Heard: time.Now()},
	})
	var b strings.Builder
	if err := rows.Table(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v2          -3ms", "3 of 64 MB", "v1 (other)", "12 for 3m0s", "line 3: bad", "sender", "2 members have other rules than the aggregator"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// A key that instances hold can be released without a control, but only while it is held.
func TestReleaseOfHeldKey(t *testing.T) {
	server := testenv.Redis(t)
	t.Setenv("HOTPARAM_REDIS", server.URL())
	file := write(t, goodRules)
	at := func() result { return hotparamCommand(t, "release", "GET /search?q=phone", "--config", file, "--yes") }
	at().exits(t, exitFailure, "has no control")
	instanceIn(t, server.URL(), "shop", 1)
	r := at()
	r.exits(t, exitOK)
	if !strings.HasPrefix(r.out, "released GET /search?q=phone (rule search-terms) in namespace shop, if instances hold it") {
		t.Errorf("%q", r.out)
	}
	if r := hotparamCommand(t, "list", "--instances", "--namespace", "shop", "--json"); !strings.Contains(r.out, `"held": 1`) || !strings.Contains(r.out, `"held_since"`) {
		t.Errorf("%s", r.out)
	}
}

// instanceIn runs an instance in a namespace until the test ends. The instance reports that it
// holds this number of keys.
func instanceIn(t *testing.T, url, namespace string, held int64) {
	t.Helper()
	client, err := hotkeys.NewClient(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	h, err := hotkeys.NewHeartbeat(client, hotkeys.HeartbeatConfig{Namespace: namespace, Member: func() published.Member {
		return published.Member{Name: "api-1", Role: published.RoleInstance, Held: held, HeldSince: time.Now()}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(testenv.Running(t, h.Run))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		members, err := hotkeys.ListMembers(t.Context(), client, namespace)
		if err != nil || time.Now().After(end) {
			t.Fatal("no heartbeat", err)
		}
		if len(members) > 0 {
			return
		}
	}
}

// A control in a namespace without heartbeats is refused, and the existing namespaces are listed.
// Otherwise it would have no effect while the operator believes that it has.
func TestControlInAnotherNamespace(t *testing.T) {
	server := testenv.Redis(t)
	t.Setenv("HOTPARAM_REDIS", server.URL())
	block := func(namespace string) result {
		return hotparamCommand(t, "block", "terms GET /search?q=phone", "--for", "10m", "--namespace", namespace)
	}
	block("hotparam").exits(t, exitFailure, "no instance sends heartbeats in namespace hotparam", "nothing was changed", "start one")
	instanceIn(t, server.URL(), "shop", 0)
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Set(t.Context(), published.NewLayout("shop").Beat, "", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	block("hotparam").exits(t, exitFailure, "namespace hotparam", "some do for shop", "--namespace")
	hotparamCommand(t, "release", "terms GET /search?q=phone").exits(t, exitFailure, "in namespace hotparam", "some do for shop")
	if n := client.Exists(t.Context(), published.NewLayout("hotparam").Control).Val(); n != 0 {
		t.Error("a control was written")
	}
	block("shop").exits(t, exitOK)
}

// A key that is neither hot nor controlled can be named without its rule if exactly one rule makes
// such keys. That includes the keys of unreadable bodies and of requests with too many keys.
func TestFindUnseenKey(t *testing.T) {
	file, err := config.Parse("test", []byte(`
rules:
  - {id: logins, match: {route: POST /login}, by: ["form:user"], hot: 10/s, limit: 5/s}
  - {id: orders, match: {route: POST /orders}, by: ["json:shop.id"], hot: 10/s, limit: 5/s}
  - {id: search, match: {route: GET /search}, by: each, hot: 10/s, limit: 5/s}
`))
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"POST /login?form:~unread":  "logins POST /login?form:~unread",
		"POST /orders?json:~unread": "orders POST /orders?json:~unread",
		"POST /orders?form:~unread": "",
		"GET /search?~more":         "search GET /search?~more",
		"GET /search?form:~unread":  "",
		"POST /login?form:user=ann": "logins POST /login?form:user=ann",
		"POST /login?form:name=ann": "",
	} {
		got, err := findKeyToControl(words, nil, nil, file.Rules)
		if (err == nil) != (want != "") || err == nil && got.key.String() != want {
			t.Errorf("%q: %q, %v, want %q", words, got.key, err, want)
		}
	}
}

// The rule may be omitted where only one rule has the key. Hot keys are searched first.
func TestFindOperated(t *testing.T) {
	hot := []published.Hot{{Key: rules.Key{Rule: "a", Text: "GET /x?q=1"}}, {Key: rules.Key{Rule: "b", Text: "GET /x?q=2"}, Mode: rules.ModeWatch}}
	controls := []published.Control{{Key: rules.Key{Rule: "b", Text: "GET /x?q=1"}}, {Key: rules.Key{Rule: "b", Text: "GET /x?q=3"}}}
	for words, want := range map[string]string{
		"GET /x?q=1":     "a GET /x?q=1",
		"b GET /x?q=1":   "b GET /x?q=1",
		"GET /x?q=3":     "b GET /x?q=3",
		" b  GET /x?q=2": "b GET /x?q=2",
		"c GET /x?q=9":   "c GET /x?q=9",
	} {
		got, err := findKeyToControl(words, hot, controls, nil)
		if err != nil || got.key.String() != want {
			t.Errorf("%q: %q, %v, want %q", words, got.key, err, want)
		}
		if seen := !strings.HasPrefix(want, "c"); got.seen != seen || got.unlimited != strings.HasPrefix(want, "b") {
			t.Errorf("%q: %+v", words, got)
		}
	}
}
