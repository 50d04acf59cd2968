package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
)

// unreachable is an address on which nobody listens.
func unreachable(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func TestListWithoutRedis(t *testing.T) {
	addr := unreachable(t)
	for _, flags := range [][]string{nil, {"--json"}} {
		r := hotparamCommand(t, append([]string{"list", "--redis", "redis://:geheim@" + addr + "/0"}, flags...)...)
		r.exits(t, exitUnreachable, addr, "--redis", "HOTPARAM_REDIS")
		if strings.Contains(r.err, "geheim") {
			t.Errorf("stderr tells the password: %q", r.err)
		}
	}
}

func TestList(t *testing.T) {
	server := testenv.Redis(t)
	t.Setenv("HOTPARAM_REDIS", server.URL())
	t.Run("nothing hot", func(t *testing.T) {
		r := hotparamCommand(t, "list", "--namespace", "shop")
		r.exits(t, exitOK, "nothing is hot", "shop")
		if r.out != "" {
			t.Errorf("stdout: %q, want none", r.out)
		}
		r = hotparamCommand(t, "list", "--namespace", "shop", "--json")
		r.exits(t, exitOK)
		if strings.TrimSpace(r.out) != "[]" {
			t.Errorf("stdout: %q, want []", r.out)
		}
	})

	since := time.Now().Truncate(time.Millisecond)
	publish(t, server, hotparam.Change{Hot: []hotparam.Hot{
		{
			Key: hotparam.Key{Rule: "search-terms", Text: "GET /search?a=1&q=phone"}, Low: 212, High: 230, Rate: 212, Since: since,
			Limit: hotparam.Rate{N: 50, Per: time.Second}, Burst: 100, Mode: hotparam.ModeLimit,
		},
		{Key: hotparam.Key{Rule: "watch", Text: "GET /browse/?q=x"}, Low: 600, High: hotparam.Unknown, Rate: 600, Since: since, Mode: hotparam.ModeWatch},
	}})
	t.Run("table", func(t *testing.T) {
		r := hotparamCommand(t, "list", "--namespace", "shop")
		r.exits(t, exitOK)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "RATE") ||
			!strings.Contains(lines[1], "600.0/s") || !strings.HasSuffix(lines[2], "GET /search?a=1&q=phone") {
			t.Errorf("stdout:\n%s\nwant a heading and two keys, the highest rate first", r.out)
		}
	})
	t.Run("json", func(t *testing.T) {
		r := hotparamCommand(t, "list", "--namespace", "shop", "--json")
		r.exits(t, exitOK)
		var keys []listed
		decode(t, r.out, &keys)
		if len(keys) != 2 {
			t.Fatalf("%d keys, want 2:\n%s", len(keys), r.out)
		}
		watched, limited := keys[0], keys[1]
		if watched.Rule != "watch" || watched.High != nil || watched.Limit != "" || watched.Mode != hotparam.ModeWatch {
			t.Errorf("first: %+v, want the watched one, with an unknown high count and no limit", watched)
		}
		if limited.Key != "GET /search?a=1&q=phone" || limited.Rule != "search-terms" || limited.Low != 212 ||
			limited.High == nil || *limited.High != 230 || limited.Limit != "50/s" || limited.Burst != 100 ||
			limited.Owner != "statsd" || !limited.Since.Equal(since) || !limited.Until.After(since) {
			t.Errorf("second: %+v", limited)
		}
		if !strings.Contains(r.out, "a=1&q=phone") {
			t.Error("the key is escaped for HTML")
		}
	})
	t.Run("another namespace", func(t *testing.T) {
		hotparamCommand(t, "list", "--namespace", "other").exits(t, exitOK, "nothing is hot")
	})
}

// publish publishes a change as an aggregator does, then ends.
func publish(t *testing.T, server *testenv.RedisServer, change hotparam.Change) {
	t.Helper()
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	publisher, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	publisher.Publish(change)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // it publishes what is pending once more before it ends
	if err := publisher.Run(ended); err != nil {
		t.Fatal(err)
	}
}
