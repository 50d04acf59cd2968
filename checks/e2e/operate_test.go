package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The second signal ends the daemon at once, whatever the first one still waits for: here a Redis
// that hangs.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	daemon := f.startAggregator()
	within(t, patience, "the aggregator ready", daemon.ready)
	f.redis.Pause()
	within(t, 4*time.Second, "the aggregator not ready", func() bool { return !daemon.ready() })
	daemon.Signal(syscall.SIGTERM)
	daemon.WaitFor("aggregator has drained") // it now tries once more to publish, for half a second
	start := time.Now()
	daemon.Signal(syscall.SIGTERM)
	if code := daemon.Wait(); code != -1 {
		t.Errorf("exit code %d, want none: the signal should have ended it", code)
	}
	t.Logf("gone %v after the second signal", time.Since(start))
}

// The first signal alone makes the daemon drain and exit soon, even if Redis hangs.
func TestSignalEndsInOrderWhileRedisHangs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	daemon, apis := f.startAggregator(), f.startAPIs(1)
	within(t, patience, "the aggregator ready", daemon.ready)
	f.redis.Pause()
	start := time.Now()
	daemon.Signal(syscall.SIGTERM)
	apis[0].Signal(syscall.SIGTERM)
	if code := daemon.Wait(); code != 0 {
		t.Errorf("aggregator: exit code %d, want 0", code)
	}
	if code := apis[0].Wait(); code != 0 {
		t.Errorf("API: exit code %d, want 0", code)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("ended after %v, want at most 5s", took)
	}
}

// Counts that arrive right before the end are published before it: the daemon drains.
func TestSignalDrains(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	daemon := f.startAggregator()
	within(t, patience, "the aggregator ready", daemon.ready)
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=phone:1|c", threshold)
	daemon.Signal(syscall.SIGTERM)
	if code := daemon.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if err := f.client.ZScore(t.Context(), f.layout.Hot, phone).Err(); err != nil {
		t.Errorf("%q is not in Redis: %v", phone, err)
	}
}

// A second daemon is started by mistake and killed. The first one says so, and then publishes again, including
// the keys that have become hot since.
func TestFencedDaemonTakesOverAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	first := f.startAggregator()
	apis := f.startAPIs(1)
	within(t, patience, "ready", first.ready)
	second := f.startAggregator("--listen", "127.0.0.1:0")
	within(t, patience, "the second ready", second.ready)
	within(t, patience, "the first one not ready", func() bool { return !first.ready() })
	pid := fmt.Sprintf("/%d/", second.PID())
	if _, body := f.get(first.url + "/-/ready"); !strings.Contains(body, pid) || !strings.Contains(body, "another aggregator") {
		t.Errorf("/-/ready: %q does not say that another aggregator publishes, process %s", body, pid)
	}
	if fenced := first.metric("hotparam_fenced"); fenced != 1 {
		t.Errorf("hotparam_fenced = %v, want 1", fenced)
	}
	const line = "shop.search-terms.hot_param.GET%20/search?q=phone:1|c"
	f.sendLines(line, threshold)
	second.Kill()
	killed := time.Now()
	within(t, patience, "the first one ready", first.ready)
	f.sendLines(line, threshold)
	f.awaitHot(patience, apis, phone)
	t.Logf("hot on the instances %v after the kill", time.Since(killed))
	if fenced, takeovers := first.metric("hotparam_fenced"), first.metric("hotparam_takeovers_total"); fenced != 0 || takeovers != 1 {
		t.Errorf("hotparam_fenced = %v, hotparam_takeovers_total = %v, want 0 and 1", fenced, takeovers)
	}
}

// /metrics is the text format, whole, and no parameter's value is in it.
func TestMetricsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	daemon, apis := f.startAggregator(), f.startAPIs(1)
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=phone:1|c", threshold)
	f.awaitHot(patience, apis, phone)
	status, body := f.get(daemon.url + "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d", status)
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+.0-9eEInfNa]+)$`)
	text := bufio.NewScanner(strings.NewReader(body))
	for text.Scan() {
		if !line.MatchString(text.Text()) {
			t.Errorf("/metrics: %q is no line of the text format", text.Text())
		}
	}
	if strings.Contains(body, "phone") {
		t.Error("/metrics tells a parameter's value")
	}
	for _, name := range []string{"hotparam_statsd_packets_total", "go_goroutines", "process_start_time_seconds"} {
		if daemon.metric(name) <= 0 {
			t.Errorf("%s is not above 0", name)
		}
	}
}

// The example configuration in the repository works unchanged.
func TestExampleConfigurationIsGood(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	path := filepath.Join("..", "..", "deploy", "hotparam.yaml")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	daemon := f.startProgram(f.bin.hotparam, "aggregator", "--config", path, "--dry-run", "--redis", f.redis.URL())
	if code := daemon.Wait(); code != 0 {
		t.Errorf("aggregator --dry-run: exit code %d, want 0", code)
	}
	// Flags take precedence over the file, so the example runs where its ports are taken.
	daemon = f.startProgram(f.bin.hotparam, "aggregator", "--config", path,
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--redis", f.redis.URL())
	daemon.WaitFor(`aggregator is up.* rules=[1-9]`)
	api := f.startProgram(f.bin.api, "--config", path, "--listen", "127.0.0.1:0")
	url := "http://" + api.WaitFor(`api is up.* address=(\S+)`)[1]
	for _, path := range []string{"/search?q=phone", "/products/1", "/healthz"} {
		if status, _ := f.get(url + path); status != http.StatusOK {
			t.Errorf("GET %s: %d, want 200", path, status)
		}
	}
}

// A key with a long window stays hot whether the aggregator is killed or asked to end. The next
// one takes the key over, and its high count is unknown at first.
func TestHotKeyOfALongWindowOutlivesTheAggregator(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), strings.Replace(searchRule, "100/s", "100/1m", 1))
	type entry struct {
		Since, Until int64
		High         *int64
	}
	read := func() (e entry, ok bool) {
		err := json.Unmarshal([]byte(f.client.HGet(t.Context(), f.layout.Info, phone).Val()), &e)
		return e, err == nil
	}
	daemon := f.startAggregator()
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=phone:150|c", 1)
	within(t, patience, "phone is hot", func() bool { _, ok := read(); return ok })
	before, _ := read()
	for _, end := range []func(){func() { daemon.Kill() }, func() { daemon.Signal(syscall.SIGTERM); daemon.Wait() }} {
		end()
		last, _ := read()
		daemon = f.startAggregator()
		took := within(t, patience, "the next aggregator keeps phone hot", func() bool {
			e, ok := read()
			return ok && e.Until > last.Until
		})
		t.Logf("the next aggregator keeps phone hot after %v", took)
		if e, _ := read(); e.Since != before.Since || e.High != nil {
			t.Errorf("published is %+v, want it since %d, with a high count that is unknown", e, before.Since)
		}
	}
}

// The parts may start in any order. Here each starts before the parts that it needs.
func TestAnyOrderOfStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	f.redis.Kill()
	apis := f.startAPIs(2)
	load := f.startLoad(apis)
	load.calm()
	within(t, patience, "counts that could not be sent are counted as dropped", func() bool {
		return all(apis, func(in instance) bool { return in.Collector.Dropped.SendError > 0 })
	})
	daemon := f.startAggregator()
	within(t, patience, "the aggregator counts", func() bool { return daemon.metric("hotparam_hot_keys") == 1 })
	if daemon.ready() {
		t.Error("the aggregator is ready without Redis")
	}
	f.redis.Restart()
	f.awaitWell(recovery, apis, phone)
	within(t, recovery, "the aggregator ready", daemon.ready)
	load.stop()
	mustBeGood(t, load.flows)
}
