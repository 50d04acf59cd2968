package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/kafkafake"
	"github.com/hotparam/hotparam/internal/wire"
)

// An aggregator receives exactly the emitted counts.
func TestEmitSendsStatsD(t *testing.T) {
	var lc net.ListenConfig
	socket, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	lines := make(chan string, 1000)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, _, err := socket.ReadFrom(buf)
			if err != nil {
				close(lines)
				return
			}
			for line := range strings.Lines(string(buf[:n])) {
				lines <- strings.TrimSpace(line)
			}
		}
	}()
	file := write(t, strings.Replace(goodRules, "rules:", fmt.Sprintf("statsd: {addresses: [%q]}\nrules:", socket.LocalAddr()), 1))
	for _, key := range []string{"GET /search?q=a%20b", "search-terms GET /search?q=a b"} {
		r := hotparamCommand(t, "emit", "--config", file, key, "321", "--over", "100ms")
		r.exits(t, exitOK, "sent 321 of 321 counts of GET /search?q=a%20b by rule search-terms", "hotparam list --config")
		sum, instance := 0, false
		for end := time.After(20 * time.Second); sum < 321 || !instance; {
			select {
			case line := <-lines:
				instance = instance || strings.Contains(line, "hotparam-emit")
				var n int
				if _, value, found := strings.Cut(line, ":"); found && strings.Contains(line, "search-terms") {
					if _, err := fmt.Sscanf(value, "%d|c", &n); err == nil {
						sum += n
					}
				}
			case <-end:
				t.Fatalf("%s: %d counts arrived, want 321 (instance seen: %t)", key, sum, instance)
			}
		}
		if sum != 321 {
			t.Errorf("%s: %d counts arrived, want 321", key, sum)
		}
	}
}

func TestEmitSendsToKafka(t *testing.T) {
	broker, err := kafkafake.Start(1, wire.DefaultTopic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	file := func(address string) string {
		return write(t, strings.Replace(goodRules, "rules:", fmt.Sprintf("aggregator: {source: kafka}\nkafka: {brokers: [%q], timeout: 500ms}\nrules:", address), 1))
	}
	hotparamCommand(t, "emit", "--config", file(broker.Addr()), "GET /search?q=phone", "7").exits(t, exitOK, "sent 7 of 7 counts")
	hotparamCommand(t, "emit", "--config", file(unreachable(t)), "GET /search?q=phone").exits(t, exitUnreachable, "counts do not arrive")
}

func TestEmitWithoutReceiver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.sock")
	file := write(t, strings.Replace(goodRules, "rules:", fmt.Sprintf("statsd: {addresses: [%q]}\nrules:", "unix://"+path), 1))
	hotparamCommand(t, "emit", "--config", file, "GET /search?q=phone").exits(t, exitUnreachable, "could not be sent", "hotparam doctor")
}

func TestFindKey(t *testing.T) {
	file, err := config.Parse("hotparam.yaml", []byte(`
rules:
  - {id: users, match: {route: "GET /u/{id}"}, by: ["path:id"], hot: 1/s}
  - {id: terms, match: {route: "GET /search"}, by: [q], hot: 1/s}
  - {id: pages, match: {route: "GET /search"}, by: [q, page], hot: 1/s}
  - {id: bare, match: {route: "*"}, by: [tenant], key: params, hot: 1/s}
  - {id: all, match: {route: "*"}, limit: 1/s}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ rule, text, want string }{
		{"", "GET /u/{id}?path:id=7", "users GET /u/{id}?path:id=7"},
		{"", "GET /search?q=1", "rules terms, pages make such keys"},
		{"", "GET /search?page=2&q=1", "pages GET /search?page=2&q=1"},
		{"terms", "GET /search?q=1", "terms GET /search?q=1"},
		{"", "terms GET /search?q=1", "terms GET /search?q=1"},
		{"", "tenant=acme", "bare tenant=acme"},
		{"all", "GET /x?q=1", "has no hot"},
		{"", "POST /x?q=1", "no rule with hot"},
	} {
		key, err := findKey(file.Rules, test.rule, test.text)
		got := key.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%q %q: %s, want %q", test.rule, test.text, got, test.want)
		}
	}
}
