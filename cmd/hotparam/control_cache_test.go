package main

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/internal/testenv"
)

// answerCache is a cache that sends the tags that are invalidated.
type answerCache chan uint64

func (answerCache) InvalidateTarget(uint64)   {}
func (c answerCache) InvalidateTag(id uint64) { c <- id }
func (answerCache) Flush()                    {}

// The answers of a key are dropped at all instances, whether the key is hot, has a control, or
// neither. Its control stays.
func TestReleaseOfAnswers(t *testing.T) {
	server := testenv.Redis(t)
	t.Setenv("HOTPARAM_REDIS", server.URL())
	path := write(t, `namespace: shop
rules:
  - {id: terms, match: {route: "GET /search"}, by: [q], hot: 50/1s, on_hot: {cache: 5s}}
  - {id: pages, match: {route: "GET /search"}, by: [page], hot: 50/1s}
`)
	release := func(words ...string) result {
		return hotparamCommand(t, append([]string{"release", "--cache", "--config", path}, words...)...)
	}
	release("GET /search?q=phone").exits(t, exitFailure, "release: no instance sends heartbeats in namespace shop", "nothing was changed")
	instanceIn(t, server.URL(), "shop", 0)
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	cache := make(answerCache, 10)
	v, err := hotkeys.NewInvalidator(client, hotkeys.WatcherConfig{Namespace: "shop"}, cache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(testenv.Running(t, v.Run))
	for end := time.Now().Add(20 * time.Second); v.Stats().Flushes == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not follow")
		}
	}
	release("GET /search?q=first").exits(t, exitOK) // the stream begins with it, so all answers are dropped

	r := release("GET /search?q=phone")
	r.exits(t, exitOK, "is not hot in namespace shop now")
	if want := "all instances drop the answers of GET /search?q=phone (rule terms) in namespace shop within a second\n"; r.out != want {
		t.Errorf("%q", r.out)
	}
	hotparamCommand(t, "block", "GET /search?q=phone", "--for", "10m", "--config", path).exits(t, exitOK)
	// The key is given as list prints it, and without the file, since it has a control now.
	r = hotparamCommand(t, "release", "terms", " GET", "/search?q=phone", "--cache", "--namespace", "shop", "--json")
	r.exits(t, exitOK)
	var dropped struct{ Namespace, Key, Rule, Cache string }
	if decodeJSON(t, r.out, &dropped); dropped.Namespace != "shop" || dropped.Key != "GET /search?q=phone" || dropped.Rule != "terms" || dropped.Cache != "dropped" {
		t.Errorf("%+v", dropped)
	}
	if strings.Contains(r.err, "note:") {
		t.Errorf("%q", r.err)
	}
	for range 2 {
		select {
		case id := <-cache:
			if id == onhot.TagID("terms GET /search?q=first") { // the instance has first read the stream after it
				id = <-cache
			}
			if id != onhot.TagID("terms GET /search?q=phone") {
				t.Errorf("the tag %#x", id)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no invalidation")
		}
	}
	if r := hotparamCommand(t, "list", "--controls", "--namespace", "shop"); !strings.Contains(r.out, "block ") {
		t.Errorf("the control has gone: %q", r.out)
	}

	release("GET /search?page=2").exits(t, exitUsage, `rule "pages" has no on_hot`)
	release("GET /none?q=x").exits(t, exitUsage, "no rule of the file makes such a key")
	release("GET /search?q=*").exits(t, exitUsage, "is a pattern")
	release("GET /search?q=phone", "--why", "x").exits(t, exitUsage, "--why")
	hotparamCommand(t, "release", "GET /search?q=x", "--cache", "--namespace", "shop").exits(t, exitUsage, "put its rule before it")
	hotparamCommand(t, "block", "GET /search?q=x", "--cache", "--for", "1m").exits(t, exitUsage, "--cache")
	t.Setenv("HOTPARAM_REDIS", "redis://"+unreachable(t))
	release("GET /search?q=phone").exits(t, exitUnreachable, "is Redis running")
}

// An operator without the rights gets an error that names them.
func TestReleaseOfAnswersWithoutRights(t *testing.T) {
	server := testenv.Redis(t)
	admin, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">geheim", "%R~hotparam:{shop}:*", "+@read", "+@connection", "+@transaction", "+time").Err(); err != nil {
		t.Fatal(err)
	}
	instanceIn(t, server.URL(), "shop", 0)
	t.Setenv("HOTPARAM_REDIS", strings.Replace(server.URL(), "redis://", "redis://reader:geheim@", 1))
	r := hotparamCommand(t, "release", "terms GET /search?q=phone", "--namespace", "shop", "--cache")
	r.exits(t, exitFailure, "hotparam-operator", "docs/REDIS.md")
	if strings.Contains(r.err, "geheim") {
		t.Errorf("stderr has the password: %q", r.err)
	}
}
