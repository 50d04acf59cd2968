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
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
)

// The rule that most tests use: hot at 100 per second over all instances, then held to 10 per
// second on each. A hot key cools soon.
const (
	threshold = 100
	limit     = 10
	burst     = 5

	searchRule = `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 100/s, exit: 80%, hold: 1s, cool_down: 0s}
    limit: {rate: 10/s, burst: 5, scope: instance}
`
	phone = "search-terms GET /search?q=phone"
)

// searchKey returns the key of a search, with its rule.
func searchKey(q string) string { return "search-terms GET /search?q=" + q }

// fleet is one Redis with the processes started around it. All of it belongs to one test and
// stops with it.
type fleet struct {
	t      *testing.T
	bin    programs
	redis  *testenv.RedisServer
	client redis.UniversalClient
	layout published.Layout
	http   *http.Client

	rules     string
	sections  func() string // sections of a process's file other than the namespace and the rules
	variables []string      // added to the instances' environment
	memory    string
	statsd    string // where the aggregator listens

	redisURL string
	owner    string        // publisher of phone
	beat     time.Duration // lifetime of a heartbeat
	settles  time.Duration // time after the start in which keys may stay hot longer than coolWithin
}

// newFleet returns a fleet whose counts travel by StatsD.
func newFleet(t *testing.T, bin programs, rules string) *fleet {
	t.Helper()
	server := testenv.Redis(t)
	f := newFleetOn(t, bin, rules, server.URL())
	f.redis, f.statsd, f.owner, f.beat = server, fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)), "statsd", 5*time.Second
	f.sections = func() string { return f.sectionsAt(f.statsd, f.redis.Addr()) }
	return f
}

// newFleetOn returns a fleet on the caller's Redis. The caller also decides how counts travel.
func newFleetOn(t *testing.T, bin programs, rules, redisURL string) *fleet {
	t.Helper()
	f := &fleet{
		t: t, bin: bin, layout: published.NewLayout("shop"), rules: rules, memory: "64MB", redisURL: redisURL,
		http: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
			Timeout:   patience,
		},
	}
	client, err := hotkeys.NewClient(redisURL)
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

// sectionsAt returns the configuration sections of a process that reaches the others at these
// addresses.
func (f *fleet) sectionsAt(statsd, redisAddr string) string {
	return fmt.Sprintf(`aggregator: {listen: %q, redis: "redis://%s/0", http: "127.0.0.1:0", memory: %s}`, statsd, redisAddr, f.memory)
}

// file writes a configuration file.
func (f *fleet) file(sections string) (path string) {
	f.t.Helper()
	path = filepath.Join(f.t.TempDir(), "hotparam.yaml")
	f.writeConfig(path, sections)
	return path
}

// writeConfig overwrites a configuration file, as an operator does.
func (f *fleet) writeConfig(path, sections string) {
	f.t.Helper()
	testenv.WriteFile(f.t, path, "namespace: shop\n"+sections+"\nrules:"+f.rules)
}

// daemon is a running aggregator.
type daemon struct {
	*testenv.Process
	f         *fleet
	file, url string
}

// startAggregator starts an aggregator with a file of its own.
func (f *fleet) startAggregator(arguments ...string) *daemon {
	f.t.Helper()
	return f.startAggregatorOf(f.file(f.sections()), arguments...)
}

func (f *fleet) startAggregatorOf(file string, arguments ...string) *daemon {
	f.t.Helper()
	p := f.startProgram(f.bin.hotparam, append([]string{"aggregator", "--config", file}, arguments...)...)
	return &daemon{p, f, file, "http://" + p.WaitFor(`aggregator is up.* http=(\S+)`)[1]}
}

// api is a running instance of the example API.
type api struct {
	*testenv.Process
	f         *fleet
	file, url string
}

func (f *fleet) startAPI() *api {
	f.t.Helper()
	return f.startAPIOver(f.sections())
}

// startAPIOver starts an instance whose file has these sections.
func (f *fleet) startAPIOver(sections string) *api {
	f.t.Helper()
	file := f.file(sections)
	p := f.startWith(f.variables, f.bin.api, "--listen", "127.0.0.1:0", "--config", file)
	return &api{p, f, file, "http://" + p.WaitFor(`api is up.* address=(\S+)`)[1]}
}

func (f *fleet) startAPIs(n int) []*api {
	f.t.Helper()
	apis := make([]*api, n)
	for i := range apis {
		apis[i] = f.startAPI()
	}
	return apis
}

// startProgram starts a process that must exit with 0 when it is asked to end. A data race makes it exit
// with 66.
func (f *fleet) startProgram(path string, args ...string) *testenv.Process {
	f.t.Helper()
	return f.startWith(nil, path, args...)
}

// startWith is like start, with more variables in the process's environment.
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

// startSelf starts this test program as what the variables make it.
func (f *fleet) startSelf(variables ...string) *testenv.Process {
	f.t.Helper()
	program, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	return f.startWith(variables, program)
}

// instance is the state that an API instance shows at /debug/hot.
type instance struct {
	Hot       []middleware.HotKey
	Guard     middleware.Stats
	Collector collector.Stats
	Watcher   hotkeys.WatcherStats
	Members   redislimiter.MembersStats
	Sink      kafkasink.Stats // where counts travel by Kafka
}

func (a *api) state() instance {
	a.f.t.Helper()
	in, err := a.fetchState(a.f.t.Context())
	if err != nil {
		a.f.t.Fatal(err)
	}
	return in
}

func (a *api) fetchState(ctx context.Context) (in instance, err error) {
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

// search returns the URL of a search at this instance.
func (a *api) search(q string) string { return a.url + "/search?q=" + q }

// get returns the status and the body of an answer. No answer fails the test.
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

// ready reports whether the aggregator calls itself ready.
func (d *daemon) ready() bool {
	d.f.t.Helper()
	status, body := d.f.get(d.url + "/-/ready")
	if status != http.StatusOK && status != http.StatusServiceUnavailable {
		d.f.t.Fatalf("/-/ready: %d %q, want 200 or 503", status, body)
	}
	return status == http.StatusOK
}

// metric returns the value of one metric, whose labels are part of its name.
func (d *daemon) metric(name string) float64 {
	d.f.t.Helper()
	_, body := d.f.get(d.url + "/metrics")
	v, err := testenv.Metric(body, name)
	if err != nil {
		d.f.t.Fatal(err)
	}
	return v
}

// patience bounds waits that have no bound of their own.
const patience = 20 * time.Second

// within is [testenv.Within].
func within(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	return testenv.Within(t, limit, what, ok)
}

// all reports whether ok holds for every instance.
func all(apis []*api, ok func(instance) bool) bool {
	return !slices.ContainsFunc(apis, func(a *api) bool { return !ok(a.state()) })
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

// awaitWell waits until Redis holds the member and all instances are connected and follow the
// version of the set in Redis.
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

// sendLines sends a StatsD line so many times, each in a packet of its own, as nc would.
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
