package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// growing is a buffer that a test reads while a command writes.
type growing struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (g *growing) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.Write(p)
}

func (g *growing) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.String()
}

// watching runs watch until the test ends.
func watching(t *testing.T, args ...string) (out, errs *growing) {
	t.Helper()
	out, errs = new(growing), new(growing)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"watch"}, args...), streams{strings.NewReader(""), out, errs})
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitOK {
			t.Errorf("watch ends with %d: %s", code, errs)
		}
	})
	return out, errs
}

func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	testenv.Eventually(t, what, is)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	words, errs := watching(t, "--redis", server.URL(), "--namespace", "shop")
	lines, errs2 := watching(t, "--redis", server.URL(), "--namespace", "shop", "--json")
	within(t, "both watch", func() bool {
		return strings.Contains(errs.String(), "watching namespace") && strings.Contains(errs2.String(), "watching namespace")
	})
	publish(t, server, published.Change{Hot: []published.Hot{{
		Key: rules.Key{Rule: "search-terms", Text: "GET /search?q=phone"}, Low: 212, High: 230, Rate: 212, Since: time.Now(),
		Cause: published.Cause{Rate: rules.Rate{N: 200, Per: time.Second}}, Limit: rules.Rate{N: 50, Per: time.Second}, Burst: 100, Mode: rules.ModeLimit,
	}}})
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key := rules.Key{Rule: "search-terms", Text: "GET /search?q=\x1b[2J"}
	if _, err := hotkeys.CarryOut(t.Context(), client, "shop", hotkeys.ControlOrder{Key: key, Action: published.ControlBlock, For: time.Minute, Why: "scraper", Claimed: "ann"}); err != nil {
		t.Fatal(err)
	}
	within(t, "both have two lines", func() bool {
		return strings.Count(words.String(), "\n") >= 2 && strings.Count(lines.String(), "\n") >= 2
	})
	for _, want := range []string{"hot      search-terms GET /search?q=phone: 212-230 in 1s, hot at 200/s; limit 50/s", "block    search-terms GET /search?q=\ufffd[2J: scraper; until ", "(claims to be ann)"} {
		if !strings.Contains(words.String(), want) {
			t.Errorf("%q is missing in\n%s", want, words)
		}
	}
	if strings.Contains(words.String()+lines.String(), "\x1b") {
		t.Error("a control character reached the terminal")
	}
	first, _, _ := strings.Cut(lines.String(), "\n")
	var e map[string]any
	if err := json.Unmarshal([]byte(first), &e); err != nil || e["type"] != "hot" || e["rule"] != "search-terms" {
		t.Errorf("the first line is %s, %v", first, err)
	}
	// A watch that resumes after the first event finds the later ones.
	again, _ := watching(t, "--redis", server.URL(), "--namespace", "shop", "--json", "--after", e["id"].(string))
	within(t, "the block is found", func() bool { return strings.Count(again.String(), `"type":"block"`) == 1 })
}

func TestWatchUsage(t *testing.T) {
	t.Parallel()
	hotparamCommand(t, "watch", "--namespace", "a b").exits(t, exitUsage, "--namespace")
	hotparamCommand(t, "watch", "--after", "yesterday").exits(t, exitUsage, "--after")
	hotparamCommand(t, "top").exits(t, exitUsage, "needs a terminal", "hotparam watch")
}

// While Redis is unavailable, watch says so and keeps trying.
func TestWatchWaitsForRedis(t *testing.T) {
	t.Parallel()
	_, errs := watching(t, "--redis", "redis://:geheim@"+unreachable(t)+"/0")
	within(t, "it says that Redis is away", func() bool { return strings.Contains(errs.String(), "trying again") })
	if strings.Contains(errs.String(), "geheim") {
		t.Errorf("it tells the password: %s", errs)
	}
}

// The daemon posts keys that become hot to the webhook of its file, and logs it.
func TestAggregatorPostsToTheWebhook(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	bodies := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		if r.Header.Get("X-Hotparam-Signature") != "" {
			bodies <- b.String()
		}
	}))
	defer receiver.Close()
	secret := write(t, "0123456789abcdef0123456789abcdef\n")
	file := write(t, `namespace: shop
rules: [{id: a, match: {route: "GET /search"}, by: [q], hot: 5/s, limit: 1/s}]
aggregator: {listen: "127.0.0.1:0", http: "127.0.0.1:0", redis: "`+server.URL()+`"}
webhook: {url: "`+receiver.URL+`", secret_file: "`+secret+`"}
`)
	d := startDaemon(t, "--config", file)
	d.find(`the webhook sends from here.* (after)=`)
	conn, err := net.Dial("udp", d.find(`statsd=(\S+)`))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("shop.a.hot_param.GET%20/search?q=x:9|c\n")); err != nil {
		t.Fatal(err)
	}
	d.find(`msg=(hot) rule=a key="GET /search\?q=x"`)
	select {
	case body := <-bodies:
		if !strings.Contains(body, `"key":"GET /search?q=x"`) {
			t.Errorf("posted: %s", body)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was posted")
	}
	eventually(t, d.serves("hotparam_webhook_sending 1", "hotparam_webhook_posted_total 1", `hotparam_webhook_dropped_total{reason="refused"} 0`))
}
