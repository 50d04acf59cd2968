package main

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// unreachable returns an address where nothing listens.
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

// beat makes a member send heartbeats until the test ends.
func beat(t *testing.T, server *testenv.RedisServer, m published.Member) {
	t.Helper()
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	h, err := hotkeys.NewHeartbeat(client, hotkeys.HeartbeatConfig{Namespace: "shop", Member: func() published.Member { return m }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = client.Close()
	})
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
	publish(t, server, published.Change{Hot: []published.Hot{
		{
			Key: rules.Key{Rule: "search-terms", Text: "GET /search?a=1&q=phone"}, Low: 212, High: 230, Rate: 212, Since: since,
			Cause: published.Cause{Rate: rules.Rate{N: 200, Per: time.Second}},
			Limit: rules.Rate{N: 50, Per: time.Second}, Burst: 100, Mode: rules.ModeLimit,
			Top: &published.Attribution{
				Routes:   []published.Origin{{Name: "GET /search", Count: 180}, {Name: "GET /browse/", Count: 32, Over: 12}},
				Callers:  []published.Origin{{Name: "\x1b[2J", Count: 7}},
				Explains: 4,
			},
			Outcomes: &published.FleetOutcomes{Outcomes: published.Outcomes{Passed: 1000, Refused: 61200}},
		},
		{Key: rules.Key{Rule: "watch", Text: "GET /browse/?q=x"}, Low: 60, High: published.Unknown, Estimated: true, Rate: 600, Since: since, Mode: rules.ModeWatch},
	}})
	t.Run("table", func(t *testing.T) {
		r := hotparamCommand(t, "list", "--namespace", "shop")
		r.exits(t, exitOK)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "RATE") ||
			!strings.HasPrefix(lines[1], "600.0/s estimated  60 or more     -       -") || !strings.HasPrefix(lines[2], "212.0/s            212-230 in 1s  200/s   50/s") || !strings.HasSuffix(lines[2], "GET /search?a=1&q=phone") {
			t.Errorf("stdout:\n%s\nwant a heading and two keys, the highest rate first", r.out)
		}
	})
	t.Run("admitted", func(t *testing.T) {
		key := rules.Key{Rule: "search-terms", Text: "GET /search?a=1&q=phone"}
		watched := limiter.KeyID([]byte("watch GET /browse/?q=x"))
		for name, n := range map[string]int64{"api-1": 400, "api-2": 520} {
			id := limiter.KeyID([]byte(key.String()))
			beat(t, server, published.Member{Name: name, Role: published.RoleInstance, Admitted: []published.Admitted{
				{ID: id, N: n, Span: 10 * time.Second, Lately: published.Outcomes{Passed: n, Refused: 10 * n}, Since: since, Outcomes: published.Outcomes{Refused: 1}}, {ID: watched, Span: 10 * time.Second, OnHot: published.OnHotCounts{Stored: 10 * n}},
			}})
		}
		testenv.Within(t, 20*time.Second, "both instances", func() bool {
			return strings.Contains(hotparamCommand(t, "list", "--namespace", "shop").out, "  50/s   92/s of 2 × 50/s       920 of 1,012/s  limit  ")
		})
		var keys []listed.Hot
		r := hotparamCommand(t, "list", "--namespace", "shop", "--json")
		if err := json.Unmarshal([]byte(r.out), &keys); err != nil || *keys[1].Admitted != (listed.Admitted{PerSecond: 92, Allowed: 100, Limits: 2}) || keys[0].Admitted != nil ||
			*keys[0].OnHot != (listed.OnHot{Stored: 920}) || keys[1].OnHot != nil || keys[0].Outcomes != nil ||
			*keys[1].Outcomes != (listed.Outcomes{Counts: listed.Counts[int64]{Passed: 1000, Refused: 61200}, PerSecond: listed.Counts[float64]{Passed: 92, Refused: 920}}) {
			t.Errorf("%v: %s", err, r.out)
		}
		if r := hotparamCommand(t, "list", "--namespace", "shop"); !strings.Contains(r.out, "  - · 920/s from memory  -               watch  ") {
			t.Errorf("a key that is answered from memory:\n%s", r.out)
		}
	})
	t.Run("json", func(t *testing.T) {
		r := hotparamCommand(t, "list", "--namespace", "shop", "--json")
		r.exits(t, exitOK)
		var keys []listed.Hot
		decodeJSON(t, r.out, &keys)
		if len(keys) != 2 {
			t.Fatalf("%d keys, want 2:\n%s", len(keys), r.out)
		}
		watched, limited := keys[0], keys[1]
		if watched.Rule != "watch" || watched.High != nil || !watched.Estimated || watched.Low != 60 || watched.Limit != "" || watched.Mode != rules.ModeWatch {
			t.Errorf("first: %+v, want the watched one, with an unknown high count and no limit", watched)
		}
		if limited.Key != "GET /search?a=1&q=phone" || limited.Rule != "search-terms" || limited.Low != 212 || limited.Estimated ||
			limited.High == nil || *limited.High != 230 || limited.Limit != "50/s" || limited.Burst != 100 ||
			limited.Cause != (listed.Cause{Kind: "rate", Threshold: "200/s", Min: 200, Window: 1, Unit: "requests"}) || watched.Cause != (listed.Cause{}) ||
			limited.Owner != "statsd" || !limited.Since.Equal(since) || !limited.Until.After(since) ||
			limited.Top == nil || limited.Top.Explains != 4 || limited.Top.Routes[1] != (listed.Origin{Name: "GET /browse/", Low: 20, High: 32}) {
			t.Errorf("second: %+v", limited)
		}
		if !strings.Contains(r.out, "a=1&q=phone") {
			t.Error("the key is escaped for HTML")
		}
	})
	t.Run("wide", func(t *testing.T) {
		r := hotparamCommand(t, "list", "--namespace", "shop", "--wide")
		r.exits(t, exitOK)
		if _, got, _ := strings.Cut(r.out, "GET /search?a=1&q=phone\n"); got != `    since hot         61,200 of 62,200 refused
    routes in 2s              180  GET /search
                            20-32  GET /browse/
    callers in 2s               7  `+"\uFFFD[2J"+`
    explains                    4  more specific keys, hot for no other reason
` {
			t.Errorf("below the key: %q", got)
		}
		if strings.Count(r.out, "\n") != 8 || !strings.HasPrefix(r.out, "RATE") {
			t.Errorf("want a heading and two keys, five lines below the one that is explained:\n%s", r.out)
		}
	})
	t.Run("suspects", func(t *testing.T) {
		r := hotparamCommand(t, "list", "--namespace", "shop", "--suspects")
		r.exits(t, exitOK)
		if want := "RATE     RULE   KEY\n150.0/s  watch  GET /browse/?q=y\n"; r.out != want {
			t.Errorf("got %q, want %q", r.out, want)
		}
		r = hotparamCommand(t, "list", "--namespace", "shop", "--suspects", "--json")
		r.exits(t, exitOK)
		var suspects []listed.Suspect
		if decodeJSON(t, r.out, &suspects); len(suspects) != 1 || suspects[0] != (listed.Suspect{Key: "GET /browse/?q=y", Rule: "watch", Rate: 150}) {
			t.Errorf("got %+v", suspects)
		}
	})
	t.Run("near", func(t *testing.T) {
		s := published.Summary{
			Near:    []published.Hot{{Key: rules.Key{Rule: "search-terms", Text: "GET /search?q=\x1btv"}, Rate: 124, Low: 124, High: 124, Ratio: 0.62, Cause: published.Cause{Rate: rules.Rate{N: 200, Per: time.Second}}}},
			Traffic: []published.Traffic{{Rule: "search-terms", Route: "GET /search", Rate: 3120, Keys: 940}},
		}
		client, err := hotkeys.NewClient(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		if err := client.Set(t.Context(), "hotparam:{shop}:suspects:near:statsd", published.EncodeSummary(&s), time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		r := hotparamCommand(t, "list", "--namespace", "shop", "--near")
		r.exits(t, exitOK)
		want := "NEAR  RATE     COUNT      HOT AT  RULE          KEY\n62%   124.0/s  124 in 1s  200/s   search-terms  GET /search?q=\uFFFDtv\n\n" +
			"TRAFFIC   KEYS  RULE          ROUTE\n3120.0/s  940   search-terms  GET /search\n"
		if r.out != want {
			t.Errorf("got\n%s\nwant\n%s", r.out, want)
		}
		r = hotparamCommand(t, "list", "--namespace", "shop", "--near", "--json")
		r.exits(t, exitOK)
		var near []listed.Near
		if decodeJSON(t, r.out, &near); len(near) != 1 || near[0].Near != 0.62 || near[0].Threshold != "200/s" {
			t.Errorf("got %+v", near)
		}
		hotparamCommand(t, "list", "--near", "--suspects").exits(t, exitUsage, "--near")
		hotparamCommand(t, "list", "--namespace", "other", "--near").exits(t, exitOK, "no traffic is counted")
	})
	t.Run("instances", func(t *testing.T) {
		r := hotparamCommand(t, "list", "--namespace", "shop", "--instances")
		r.exits(t, exitOK)
		if lines := strings.Split(strings.TrimSpace(r.out), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "api-1  sender  ") || !strings.Contains(lines[2], "s ago  unknown") {
			t.Errorf("got %q", r.out)
		}
		r = hotparamCommand(t, "list", "--namespace", "shop", "--instances", "--json")
		r.exits(t, exitOK)
		var instances []listed.Member
		if decodeJSON(t, r.out, &instances); len(instances) != 2 || instances[1].Name != "api-2" || time.Since(instances[1].Heard) > 10*time.Second {
			t.Errorf("got %+v", instances)
		}
	})
	t.Run("one of them", func(t *testing.T) {
		hotparamCommand(t, "list", "--suspects", "--instances").exits(t, exitUsage, "--suspects", "--instances")
	})
	t.Run("nothing else", func(t *testing.T) {
		hotparamCommand(t, "list", "--namespace", "other", "--suspects").exits(t, exitOK, "nothing is suspect")
		hotparamCommand(t, "list", "--namespace", "other", "--instances").exits(t, exitOK, "no instance")
	})
	t.Run("as a rules file says", func(t *testing.T) {
		t.Setenv("HOTPARAM_REDIS", "")
		path := write(t, goodRules+"aggregator: {redis: {url: '"+server.URL()+"'}}\n")
		r := hotparamCommand(t, "list", "--config", path)
		if r.exits(t, exitOK); !strings.Contains(r.out, "GET /search?a=1&q=phone") {
			t.Errorf("stdout:\n%s", r.out)
		}
		hotparamCommand(t, "list", "--config", path, "--namespace", "other").exits(t, exitOK, "nothing is hot")
		hotparamCommand(t, "list", "--config", path, "--redis", "redis://"+unreachable(t)).exits(t, exitUnreachable)
		hotparamCommand(t, "list", "--config", write(t, "rules: 1\n")).exits(t, exitConfig, ":1:8")
	})
	t.Run("another namespace", func(t *testing.T) {
		hotparamCommand(t, "list", "--namespace", "other").exits(t, exitOK, "nothing is hot")
	})
}

// publish publishes a change, a suspect and two instances as an aggregator does, then ends.
func publish(t *testing.T, server *testenv.RedisServer, change published.Change) {
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
	publisher.Suspects(0, []published.Hot{{Key: rules.Key{Rule: "watch", Text: "GET /browse/?q=y"}, High: published.Unknown, Rate: 150}})
	publisher.Instances([]published.Instance{{Name: "api-1", Heard: time.Now()}, {Name: "api-2", Heard: time.Now()}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- publisher.Run(ctx) }()
	testenv.Eventually(t, "entries are renewed", func() bool { return publisher.Stats().Renewals > 0 })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
