package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
)

// The rule that most tests use: hot at 100 per second over all instances, then
// held to 10 per second on each. A hot key cools soon.
const (
	threshold = 100
	limit     = 10
	burst     = 5

	searchRule = `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 100/s, exit: 80%, hold: 1s, cool_down: 0s}
    limit: {rate: 10/s, burst: 5}
`
	phone = "search-terms GET /search?q=phone"
)

// fleet is one Redis with what is started around it. All of it belongs to one
// test and stops with it.
type fleet struct {
	t      *testing.T
	bin    programs
	redis  *testenv.RedisServer
	client redis.UniversalClient
	layout hotkeys.Layout
	http   *http.Client

	rules  string
	memory string
	statsd string // where the aggregator listens

	redisURL string
	owner    string        // who publishes phone
	beat     time.Duration // how long a heartbeat is good for
	settles  time.Duration // for how long after a beginning keys may be hot longer than coolWithin
}

func newFleet(t *testing.T, bin programs, rules string) *fleet {
	t.Helper()
	f := &fleet{
		t: t, bin: bin, redis: testenv.Redis(t), layout: hotkeys.NewLayout("shop"),
		rules: rules, memory: "64MB", owner: "statsd", beat: 5 * time.Second, statsd: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)),
		http: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
			Timeout:   patience,
		},
	}
	f.redisURL = f.redis.URL()
	client, err := hotkeys.NewClient(f.redisURL)
	if err != nil {
		t.Fatal(err)
	}
	f.client = client
	t.Cleanup(func() {
		f.http.CloseIdleConnections()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// config writes a configuration file for one process; statsd and redisAddr are
// where that process finds the others.
func (f *fleet) config(statsd, redisAddr string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "hotparam.yaml")
	text := fmt.Sprintf(`namespace: shop
aggregator: {listen: "%s", redis: "redis://%s/0", http: "127.0.0.1:0", memory: %s}
rules:%s`, statsd, redisAddr, f.memory, f.rules)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// daemon is a running aggregator.
type daemon struct {
	*testenv.Process
	f   *fleet
	url string
}

func (f *fleet) startAggregator() *daemon {
	f.t.Helper()
	p := f.start(f.bin.hotparam, "aggregator", "--config", f.config(f.statsd, f.redis.Addr()))
	return &daemon{p, f, "http://" + p.WaitFor(`aggregator is up.* http=(\S+)`)[1]}
}

// api is a running instance of the example API.
type api struct {
	*testenv.Process
	f   *fleet
	url string
}

func (f *fleet) startAPI() *api {
	f.t.Helper()
	return f.startAPIAt(f.statsd, f.redis.Addr())
}

// startAPIAt starts an instance that reaches the others over other addresses.
func (f *fleet) startAPIAt(statsd, redisAddr string) *api {
	f.t.Helper()
	p := f.start(f.bin.api, "--listen", "127.0.0.1:0", "--config", f.config(statsd, redisAddr))
	return &api{p, f, "http://" + p.WaitFor(`api is up.* address=(\S+)`)[1]}
}

func (f *fleet) startAPIs(n int) []*api {
	f.t.Helper()
	apis := make([]*api, n)
	for i := range apis {
		apis[i] = f.startAPI()
	}
	return apis
}

// start starts a process that must end well: with 0 when it is asked to end. A
// data race ends in 66.
func (f *fleet) start(path string, args ...string) *testenv.Process {
	f.t.Helper()
	return f.startWith(nil, path, args...)
}

// startWith starts it with more variables in its environment.
func (f *fleet) startWith(variables []string, path string, args ...string) *testenv.Process {
	f.t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // else each takes a second more to end
	cmd.Env = append(cmd.Env, variables...)
	p := testenv.Start(f.t, cmd)
	f.t.Cleanup(func() {
		if f.t.Failed() {
			return
		}
		select {
		case <-p.Exited(): // the test ended it, and has looked at its exit code
		default:
			if code := p.Stop(); code != 0 {
				f.t.Errorf("%s ended with exit code %d, want 0", filepath.Base(path), code)
			}
		}
	})
	return p
}

// instance is what an API instance says of itself at /debug/hot.
type instance struct {
	Hot       []middleware.HotKey
	Guard     middleware.Stats
	Collector collector.Stats
	Watcher   hotkeys.WatcherStats
	Members   redislimiter.MembersStats
	Sink      kafkasink.Stats // where counts travel by Kafka
}

func (a *api) look() instance {
	a.f.t.Helper()
	in, err := a.tell(a.f.t.Context())
	if err != nil {
		a.f.t.Fatal(err)
	}
	return in
}

func (a *api) tell(ctx context.Context) (in instance, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/debug/hot", http.NoBody)
	if err != nil {
		return in, err
	}
	res, err := a.f.http.Do(req)
	if err != nil {
		return in, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&in); err != nil {
		return in, fmt.Errorf("%s: %w", req.URL, err)
	}
	return in, nil
}

func (in *instance) holds(member string) bool {
	return slices.ContainsFunc(in.Hot, func(h middleware.HotKey) bool { return h.Key.String() == member })
}

// search is the URL of a search at this instance.
func (a *api) search(q string) string { return a.url + "/search?q=" + q }

// get returns the status and the body of an answer; there must be one.
func (f *fleet) get(url string) (status int, body string) {
	f.t.Helper()
	res, err := f.http.Get(url)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatalf("GET %s: %v", url, err)
	}
	return res.StatusCode, string(text)
}

// ready tells whether the aggregator calls itself ready.
func (d *daemon) ready() bool {
	d.f.t.Helper()
	status, body := d.f.get(d.url + "/-/ready")
	if status != http.StatusOK && status != http.StatusServiceUnavailable {
		d.f.t.Fatalf("/-/ready: %d %q, want 200 or 503", status, body)
	}
	return status == http.StatusOK
}

// metric is the value of one metric, labels as they are written.
func (d *daemon) metric(name string) float64 {
	d.f.t.Helper()
	_, body := d.f.get(d.url + "/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				d.f.t.Fatalf("/metrics: %q: %v", line, err)
			}
			return v
		}
	}
	d.f.t.Fatalf("/metrics has no %s", name)
	return 0
}

// patience is how long anything may take that has no time of its own.
const patience = 20 * time.Second

// within polls until ok, which must be so within a time, and tells how long it
// took. The parts are other processes: they have no event that reaches us.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		asked := time.Since(start) // the answer is at least as old as the question
		if ok() {
			return asked
		}
		if asked > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		// The longer it takes, the less often it is asked: asking takes processor time
		// from those that are asked.
		time.Sleep(min(max(asked/50, 5*time.Millisecond), 50*time.Millisecond))
	}
}

// all tells whether ok holds for every instance.
func all(apis []*api, ok func(instance) bool) bool {
	return !slices.ContainsFunc(apis, func(a *api) bool { return !ok(a.look()) })
}

func (f *fleet) awaitHot(limit time.Duration, apis []*api, member string) time.Duration {
	f.t.Helper()
	return within(f.t, limit, fmt.Sprintf("%q in force on all instances", member), func() bool {
		return all(apis, func(in instance) bool { return in.holds(member) })
	})
}

func (f *fleet) awaitCool(limit time.Duration, apis []*api) time.Duration {
	f.t.Helper()
	return within(f.t, limit, "nothing in force on any instance", func() bool {
		return all(apis, func(in instance) bool { return len(in.Hot) == 0 })
	})
}

// awaitWell waits until Redis holds the member, and all instances follow the very
// version that is in Redis, connected.
func (f *fleet) awaitWell(limit time.Duration, apis []*api, member string) time.Duration {
	f.t.Helper()
	return within(f.t, limit, fmt.Sprintf("%q in Redis, and all instances connected, at its version and holding to it", member), func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		version, err := f.client.Get(ctx, f.layout.Version).Result()
		if err != nil || f.client.ZScore(ctx, f.layout.Hot, member).Err() != nil {
			return false
		}
		return all(apis, func(in instance) bool {
			return in.holds(member) && in.Watcher.Connected && in.Watcher.Version == version
		})
	})
}

// sendLines sends a StatsD line so many times, each in a packet of its own, as nc
// would.
func (f *fleet) sendLines(line string, times int) {
	f.t.Helper()
	conn, err := net.Dial("udp", f.statsd)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	for range times {
		if _, err := conn.Write([]byte(line)); err != nil {
			f.t.Fatal(err)
		}
	}
}
