package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// daemon is a running aggregator with the document's rules, except that a term is hot at
// threshold searches.
type daemon struct {
	udp, tcp          string // ports on 127.0.0.1
	datagrams, stream string // paths of Unix sockets
	http              string
	redis             *testenv.RedisServer
	hot               redis.UniversalClient
}

const threshold = 5

// patience bounds waits that take milliseconds on an idle machine.
const patience = 30 * time.Second

func startDaemon(t *testing.T) *daemon {
	t.Helper()
	sockets, err := os.MkdirTemp("", "hotparam-") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) }) // a temporary directory: the system removes the rest
	d := &daemon{
		datagrams: filepath.Join(sockets, "datagrams"), stream: filepath.Join(sockets, "stream"), redis: testenv.Redis(t),
	}
	settings := fmt.Sprintf(`
aggregator: {listen: ["127.0.0.1:0", "tcp://127.0.0.1:0", "unix://%s", "unixstream://%s"], redis: %q, http: "127.0.0.1:0"}
`, d.datagrams, d.stream, d.redis.URL())
	p := testenv.Start(t, exec.Command(testenv.Binary(t), "aggregator", "--config", writeRules(t, hotAt(t, threshold)+settings)))
	up := p.WaitFor(`aggregator is up.* statsd=127\.0\.0\.1:([0-9]+),tcp://127\.0\.0\.1:([0-9]+),.* http=(\S+)`)
	d.udp, d.tcp, d.http = up[1], up[2], "http://"+up[3]
	client, err := hotkeys.NewClient(d.redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	d.hot = client
	return d
}

// list returns the low count of each hot key, as the list command prints it from Redis.
func (d *daemon) list(t *testing.T) map[string]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, testenv.Binary(t), "list", "--namespace", "shop", "--redis", d.redis.URL(), "--json").Output()
	if err != nil {
		t.Fatalf("hotparam list: %v", err)
	}
	var listed []struct {
		Rule, Key string
		Low       int64
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		t.Fatalf("hotparam list: %v\n%s", err, out)
	}
	counts := make(map[string]int64)
	for _, h := range listed {
		counts[rules.Key{Rule: h.Rule, Text: h.Key}.String()] = h.Low
	}
	return counts
}

// awaitHot waits until the term is hot in Redis.
func (d *daemon) awaitHot(t *testing.T, term string) {
	t.Helper()
	key := keyOf(term)
	testenv.Within(t, patience, key+" is hot", func() bool {
		hot, err := hotkeys.List(t.Context(), d.hot, "shop")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(hot, func(h published.Hot) bool { return h.String() == key })
	})
}

func keyOf(term string) string {
	return rules.Key{Rule: "search-terms", Text: rules.Text("GET /search", rules.Param{Name: "q", Value: term})}.String()
}

// metric returns one of the daemon's metrics, by its name and labels.
func (d *daemon) metric(t *testing.T, name string) int {
	t.Helper()
	res, err := http.Get(d.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	n, err := testenv.Metric(string(text), name)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// await waits until a metric has the wanted value, and fails if it ever exceeds it.
func (d *daemon) await(t *testing.T, name string, want int) {
	t.Helper()
	testenv.Within(t, patience, fmt.Sprintf("%s is %d", name, want), func() bool {
		n := d.metric(t, name)
		if n > want {
			t.Fatalf("%s is %d, want %d", name, n, want)
		}
		return n == want
	})
}

// Metrics of the counts, and of Datadog's lines that are ignored.
const (
	counted = "hotparam_statsd_counted_total"
	events  = "hotparam_statsd_events_total"
)

// checkRejected checks that the daemon rejected no count of a client. The clients' own metrics
// are foreign, and gauges are no counters.
func (d *daemon) checkRejected(t *testing.T) {
	t.Helper()
	for _, reason := range []string{"malformed", "negative", "bad_key", "no_rule"} {
		if n := d.metric(t, `hotparam_statsd_rejected_total{reason="`+reason+`"}`); n > 0 {
			t.Errorf("%d lines were refused as %s", n, reason)
		}
	}
}
