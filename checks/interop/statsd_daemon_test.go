package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
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
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		hot, err := hotkeys.List(t.Context(), d.hot, "shop")
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hot {
			if h.String() == key {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not hot after %v; the daemon has counted %d", key, patience, d.metric(t, counted))
		}
	}
}

func keyOf(term string) string {
	return rules.Key{Rule: "search-terms", Text: rules.Text("GET /search", rules.Param{Name: "q", Value: term})}.String()
}

// metric returns one of the daemon's metrics, by its name and labels.
func (d *daemon) metric(t *testing.T, name string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.http+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// await waits until a metric has the wanted value, and fails if it ever exceeds it.
func (d *daemon) await(t *testing.T, name string, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		n := d.metric(t, name)
		if n == want {
			return
		}
		if n > want || time.Now().After(deadline) {
			t.Fatalf("%s is %d, want %d", name, n, want)
		}
	}
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
