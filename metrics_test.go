package hotparam

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

// sample returns the value of a series, and whether it exists.
func sample(t *testing.T, c prometheus.Collector, name string, labels ...string) (value float64, found bool) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "hotparam_app_"+name {
			continue
		}
		for _, m := range family.GetMetric() {
			var has []string
			for _, l := range m.GetLabel() {
				has = append(has, l.GetName()+"="+l.GetValue())
			}
			if strings.Join(has, ",") == strings.Join(labels, ",") {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()), true
			}
		}
	}
	return 0, false
}

func wantSample(t *testing.T, c prometheus.Collector, want float64, name string, labels ...string) {
	t.Helper()
	if got, found := sample(t, c, name, labels...); !found || got != want {
		t.Errorf("%s%q is %v (there: %v), want %v", name, labels, got, found, want)
	}
}

// The metrics count the outcomes of requests by rule, and contain no values of parameters.
func TestMetrics(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	f := open(t, shop(server.URL(), nowhere(t), strings.Replace(searchRule, "burst: 2", "burst: 2, scope: instance", 1), fmt.Sprintf(productRule, 2),
		`{id: shadow, match: {route: GET /healthz}, limit: {rate: 1/1h, burst: 1, on_limit: shadow}}`,
		`{id: exact, match: {route: GET /healthz}, limit: {rate: 1/1h, burst: 4, scope: exact}}`,
		`{id: blocks, match: {route: GET /healthz}, by: [q], block: {q: evil}, limit: {rate: 100/s, burst: 100}}`))
	publish(t, server.URL(), "shop", []published.Instance{{Name: "a", Heard: time.Now()}, {Name: "b", Heard: time.Now()}}, "GET /search?q=hush")
	f.await("a hot key", func() bool { return len(f.HotKeys()) == 1 })
	f.passes(7, "/search?q=hush")
	f.passes(3, "/search?q=other")
	f.passes(5, "/products")
	f.passes(6, "/healthz")
	f.passes(2, "/healthz?q=evil")
	for _, test := range []struct {
		rule, decision string
		want           float64
	}{
		{"search-terms", "within", 2}, {"search-terms", "limited", 5}, {"products", "within", 2}, {"products", "limited", 3},
		{"shadow", "shadow", 7}, {"shadow", "limited", 0}, {"exact", "within", 3}, {"exact", "limited", 2}, {"blocks", "blocked", 2}, {"exact", "gone", 0},
	} {
		wantSample(t, f, test.want, "requests_total", "decision="+test.decision, "rule="+test.rule)
	}
	wantSample(t, f, 1, "hot_keys", "rule=search-terms")
	wantSample(t, f, 0, "hot_keys", "rule=products")
	f.await("the counts", func() bool { n, _ := sample(t, f, "counted_total", "rule=search-terms"); return n == 10 })
	if n, found := sample(t, f, "exact_seconds"); !found || n < 5 || n > 6 {
		t.Errorf("%v requests asked Redis, want those of GET /healthz that nothing had denied", n)
	}
	f.await("the fleet", func() bool { n, _ := sample(t, f, "instances"); return n == 2 })
	wantSample(t, f, 1, "watcher_connected")
	wantSample(t, f, 1, "rules_info", "redact_key=", "version="+f.Stats().Rules.Version)
	if delay, found := sample(t, f, "watcher_delay_seconds"); !found || delay > 10 {
		t.Errorf("the watcher is %v s behind", delay)
	}
	problems, err := testutil.CollectAndLint(f)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %+v", err, problems)
	}
	var text strings.Builder
	registry := prometheus.NewRegistry()
	registry.MustRegister(f)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		text.WriteString(family.String())
	}
	if strings.Contains(text.String(), "hush") || strings.Contains(text.String(), "evil") {
		t.Error("a value is a label")
	}
	server.Kill()
	f.await("the outage", func() bool {
		n, _ := sample(t, f, "watcher_connected")
		failures, _ := sample(t, f, "watcher_failures_total")
		delay, _ := sample(t, f, "watcher_delay_seconds")
		return n == 0 && failures > 0 && delay > 1
	})
}

// Requests of hot keys are counted by how on_hot answered them, by rule in the metrics and by key
// for the fleet. A rule without on_hot has no such series.
func TestOnHotMetrics(t *testing.T) {
	o := newOrigin()
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), fmt.Sprintf(onHotRule, 60, "cache: 1m"), searchRule))
	h := f.Handler(o)
	f.heat(item7)
	for range 5 {
		ask(h, "GET", "/items/7")
	}
	ask(h, "GET", "/items/7", "Range", "bytes=0-1")
	ask(h, "GET", "/items/7", "Cookie", "a=b")
	for how, want := range map[string]float64{"led": 1, "hit": 4, "alone": 2, "joined": 0, "refused": 0} {
		wantSample(t, f, want, "on_hot_requests_total", "how="+how, "rule=items")
	}
	for reason, want := range map[string]float64{"cookie": 1, "range": 1, "set-cookie": 0} {
		wantSample(t, f, want, "on_hot_alone_total", "reason="+reason, "rule=items")
	}
	wantSample(t, f, 0, "on_hot_refreshes_total", "rule=items")
	wantSample(t, f, 0, "on_hot_invalidations_total", "kind=received")
	if bytes, found := sample(t, f, "on_hot_bytes", "rule=items"); !found || bytes == 0 {
		t.Errorf("an answer takes %v bytes", bytes)
	}
	if _, found := sample(t, f, "on_hot_bytes", "rule=search-terms"); found {
		t.Error("a rule without on_hot has answers")
	}
	wantSample(t, f, 4, "requests_total", "decision=shared", "rule=items")
	wantSample(t, f, 3, "requests_total", "decision=within", "rule=items")
	if got, want := f.HotKeys()[0].OnHot, (middleware.OnHotCounts{Stored: 4, Alone: 2, AloneFor: "cookie"}); got != want {
		t.Errorf("the key has %+v, want %+v", got, want)
	}
}

// Series appear and disappear with their rules, and no counter decreases.
func TestMetricsAfterReload(t *testing.T) {
	url, statsd := "redis://"+nowhere(t), nowhere(t)
	with := shop(url, statsd, searchRule, fmt.Sprintf(productRule, 2))
	without := shop(url, statsd, searchRule)
	f := open(t, with)
	f.passes(5, "/products")
	limited := func() (float64, bool) { return sample(t, f, "requests_total", "decision=limited", "rule=products") }
	reload := func(text string) {
		t.Helper()
		f.write(text)
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := limited(); n != 3 {
		t.Errorf("%v refused, want 3", n)
	}
	reload(without)
	if n, found := limited(); found {
		t.Errorf("a rule that is gone has refused %v", n)
	}
	reload(with)
	f.passes(1, "/products")
	if n, found := limited(); !found || n < 3 {
		t.Errorf("a rule that is back has refused %v (there: %v), want 3 at least", n, found)
	}
	wantSample(t, f, 2, "rules_reloads_total")
	f.write("rules: [")
	if err := f.Reload(); err == nil {
		t.Error("a bad file was put in force")
	}
	f.await("the rejection", func() bool { n, _ := sample(t, f, "rules_rejected_total"); return n >= 1 })
	wantSample(t, f, 1, "rules_refused")
	reload(without)
	wantSample(t, f, 0, "rules_refused")
}

// Two Hotparams in one process need their own labels.
func TestMetricsOfTwo(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, name := range []string{"shop", "admin"} {
		f := open(t, shop("redis://"+nowhere(t), nowhere(t), fmt.Sprintf(productRule, 1)))
		f.passes(3, "/products")
		prometheus.WrapRegistererWith(prometheus.Labels{"guard": name}, registry).MustRegister(f)
	}
	const want = `
# HELP hotparam_app_hot_keys Keys of the rule that are hot and limited here.
# TYPE hotparam_app_hot_keys gauge
hotparam_app_hot_keys{guard="admin",rule="products"} 0
hotparam_app_hot_keys{guard="shop",rule="products"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "hotparam_app_hot_keys"); err != nil {
		t.Error(err)
	}
}

// A request is visible while it waits, and is counted once its client has disconnected.
func TestMetricsOfWaiting(t *testing.T) {
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), `{id: slow, match: {route: GET /products}, limit: {rate: 1/5m, burst: 1, on_limit: wait, wait: 10m}}`))
	f.passes(1, "/products")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/products", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		f.handler.ServeHTTP(discard{}, req)
	}()
	f.await("the wait", func() bool { n, _ := sample(t, f, "waiting_requests"); return n == 1 })
	cancel()
	<-done
	wantSample(t, f, 0, "waiting_requests")
	wantSample(t, f, 1, "requests_total", "decision=gone", "rule=slow")
}

// discard is a ResponseWriter whose client has disconnected.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
