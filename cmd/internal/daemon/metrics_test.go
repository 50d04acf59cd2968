package daemon

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/cmd/internal/follow"
	"github.com/hotparam/hotparam/cmd/internal/gateway/service"
	"github.com/hotparam/hotparam/cmd/internal/httpserve"
	"github.com/hotparam/hotparam/cmd/internal/page"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/capacity"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
	_ "github.com/hotparam/hotparam/transport/kafka"
)

// documentedMetric is a row of the table of METRICS.md.
type documentedMetric struct {
	kind    string
	labels  []string
	loss    bool
	meaning string
}

func readMetricsDoc(t *testing.T) (text string, documented map[string]documentedMetric) {
	t.Helper()
	data, err := os.ReadFile("../../../METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	documented = make(map[string]documentedMetric)
	row := regexp.MustCompile("(?m)^\\| `(hotparam_[a-z_]+)(?:\\{([a-z_,]+)\\})?` \\| ([a-z]+) \\| (.+) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		d := documentedMetric{kind: m[3], meaning: m[4], loss: strings.Contains(m[4], "**data loss**")}
		if m[2] != "" {
			d.labels = strings.Split(m[2], ",")
		}
		documented[m[1]] = d
	}
	return string(data), documented
}

const goodRules = `namespace: shop
rules:
  - {id: search-terms, match: {route: "GET /search"}, by: [q], hot: {rate: 200/s}, limit: {rate: 50/s}}
`

// write writes a file of the test, and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hotparam.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func unchanged(*config.File) error { return nil }

// daemonRegistry returns the metrics of a daemon with the source, without starting it.
func daemonRegistry(t *testing.T, source string) *prometheus.Registry {
	t.Helper()
	file, err := config.Parse("test", []byte(goodRules))
	if err != nil {
		t.Fatal(err)
	}
	client, err := hotkeys.NewClient("redis://127.0.0.1:6379/0") // never used
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	set := &settings{Config{File: file, Override: unchanged, Log: slog.New(slog.DiscardHandler), Redis: client}, baseline.NewDays(source), new(admitted.Totals), nil}
	set.File.Aggregator = config.Aggregator{Source: source, Listen: []string{"127.0.0.1:0"}}.WithDefaults()
	var p pipeline
	switch source {
	case config.SourceKafka:
		p = kafkaUnderTest{newKafkaSource(t, set)}
	case config.SourceGraphite:
		set.File.Graphite = set.File.Graphite.WithDefaults()
		if p, err = makeGraphitePipeline(set); err != nil {
			t.Fatal(err)
		}
	default:
		if p, err = newStatsDPipeline(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // that closes its socket
			if err := p.(*statsdPipeline).agg.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	set.File.Webhook = config.Webhook{URL: "http://127.0.0.1:1/", Format: config.WebhookSlack}
	events, err := postEvents(p, set)
	if err != nil {
		t.Fatal(err)
	}
	baselines, err := keepBaselines(p, set)
	if err != nil {
		t.Fatal(err)
	}
	rules := newRulesFile(set, p)
	whole := &accompanied{p, rules, nil, []companion{events, baselines, {collect: new(histories).collect}, {collect: func(s figure.Samples) { figure.Collect(s, rulesfile.Figures, rules.Stats()) }}, {collect: collectFleet}, {collect: collectPool}}}
	shown := page.New(page.Config{Guard: page.NewGuard(page.GuardConfig{})})
	return status.Registry(statusOf(whole, shown, set), httpserve.New(httpserve.Config{}))
}

// applicationRegistry returns the metrics of an application whose counts travel by this source.
// Its Redis and other servers do not exist.
func applicationRegistry(t *testing.T, source string) *prometheus.Registry {
	t.Helper()
	path := write(t, "aggregator: {source: "+source+", redis: redis://127.0.0.1:1/0}\nkafka: {brokers: [\"127.0.0.1:1\"]}\n"+
		"rules:\n  - {id: a, match: {route: /a}, by: [q], hot: 9/s, limit: 5/s, on_hot: {cache: 1s}}\n")
	hp, err := hotparam.Open(t.Context(), path, hotparam.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hp.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(hp)
	return registry
}

// guardRegistry returns the metrics that a guard with all doors has in addition to those of
// applications.
func guardRegistry(t *testing.T) *prometheus.Registry {
	t.Helper()
	path := write(t, "guard: {check: {listen: \"127.0.0.1:0\"}, rls: {listen: \"127.0.0.1:0\"}, spoe: {listen: \"127.0.0.1:0\"}, auth: [{listen: \"127.0.0.1:0\"}]}\n"+
		"aggregator: {source: none}\nrules:\n  - {id: a, match: {route: /a}, by: [q], limit: {rate: 9/s}}\n")
	file, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	hp, err := hotparam.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := service.Open(t.Context(), service.Config{Hotparam: hp, Guard: file.Guard.WithDefaults(), Changed: func() []string { return nil }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		guard.Close()
		if err := hp.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return status.Registry(status.Config{Collect: guard.Collect}, httpserve.New(httpserve.Config{}))
}

// followRegistry returns the metrics of a follower.
func followRegistry(t *testing.T) *prometheus.Registry {
	t.Helper()
	path := write(t, "statsd: {addresses: [\"127.0.0.1:1\"]}\nrules:\n  - {id: a, match: {route: /a}, by: [q], hot: 9/s}\n")
	follower, err := follow.New(follow.Config{Path: path, Logs: []string{path + ".log"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := follower.Close(); err != nil {
			t.Error(err)
		}
	})
	return status.Registry(status.Config{Collect: follower.Collect}, httpserve.New(httpserve.Config{}))
}

// newKafkaSource returns a pipeline that has not contacted its brokers.
func newKafkaSource(t *testing.T, set *settings) *kafkaPipeline {
	t.Helper()
	set.File.Kafka = set.File.Kafka.WithDefaults()
	p, err := makeKafkaPipeline(set)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// kafkaUnderTest has one partition, which a pipeline that was not started lacks.
type kafkaUnderTest struct{ *kafkaPipeline }

func (p kafkaUnderTest) collect(s figure.Samples) {
	p.kafkaPipeline.collect(s)
	figure.Collect(s, partitionMetrics, kafkasource.PartitionStats{})
}

// collectFleet sends the metrics of a fictitious fleet.
func collectFleet(s figure.Samples) {
	figure.Collect(s, page.ActFigures, page.Stats{}) // of a page that acts, in another process
	figure.Collect(s, fleetMetrics, fleetFigures{Roles: map[published.Role]int{}, Controls: map[published.ControlAction]int{}, Admitted: map[string]admittedFigures{"r": {Bounded: true}}})
}

// collectPool sends the metrics of a fictitious pool.
func collectPool(s figure.Samples) {
	route := aggregator.RouteStats{Rule: "r", Route: "GET /a", Seen: capacity.Seen{Slow: 1}}
	figure.Collect(s, costMetrics, aggregator.DetectorStats{Pools: []aggregator.PoolStats{{Name: "p", Routes: []aggregator.RouteStats{route}}}})
}

// Every metric is documented, and every documented metric exists, with the same type, labels and
// mark of data loss.
func TestMetricsAgreeWithTheirDocumentation(t *testing.T) {
	_, documented := readMetricsDoc(t)
	served := make(map[string]bool)
	for _, source := range config.Sources {
		registry := daemonRegistry(t, source)
		agreeWithDocumentation(t, registry, documented, served)
		problems, err := testutil.GatherAndLint(registry)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	agreeWithDocumentation(t, guardRegistry(t), documented, served)
	agreeWithDocumentation(t, followRegistry(t), documented, served)
	for _, source := range []string{config.SourceStatsD, config.SourceKafka} {
		agreeWithDocumentation(t, applicationRegistry(t, source), documented, served)
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if !served[name] {
			t.Errorf("METRICS.md has %s, /metrics has not", name)
		}
	}
}

func agreeWithDocumentation(t *testing.T, registry *prometheus.Registry, documented map[string]documentedMetric, served map[string]bool) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		name := family.GetName()
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		served[name] = true
		doc, ok := documented[name]
		if !ok {
			t.Errorf("%s is not in METRICS.md", name)
			continue
		}
		if kind := strings.ToLower(family.GetType().String()); kind != doc.kind {
			t.Errorf("%s is a %s, in METRICS.md a %s", name, kind, doc.kind)
		}
		if loss := strings.HasPrefix(family.GetHelp(), "DATA LOSS: "); loss != doc.loss {
			t.Errorf("%s: data loss is %v in its help, %v in METRICS.md", name, loss, doc.loss)
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName())
				if label.GetName() == "reason" && !strings.Contains(doc.meaning, "`"+label.GetValue()+"`") {
					t.Errorf("%s: METRICS.md does not explain the reason %q", name, label.GetValue())
				}
			}
			if !slices.Equal(labels, doc.labels) {
				t.Errorf("%s has the labels %q, in METRICS.md %q", name, labels, doc.labels)
			}
		}
	}
}

// Metrics named in hints, logs and help exist.
func TestMessagesNameMetricsThatExist(t *testing.T) {
	_, documented := readMetricsDoc(t)
	n := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			for _, name := range regexp.MustCompile(`\bhotparam_[a-z]+_[a-z_]*[a-z]\b`).FindAllString(literal.Value, -1) {
				n++
				if _, ok := documented[name]; !ok {
					t.Errorf("%s: METRICS.md does not have %s", path, name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Errorf("messages name %d metrics", n)
	}
}

// ofHotKey has the fields that describe a hot key, as Redis has them. The others are counters.
var ofHotKey = []string{"Cause", "Low", "High", "Rate", "Limit", "Burst", "Mode", "Scope", "Since", "Until", "Local", "Spared", "Pinned"}

// The application's counters are documented by the names of their fields.
func TestApplicationCountersAreDocumented(t *testing.T) {
	text, _ := readMetricsDoc(t)
	for _, stats := range []any{
		middleware.Stats{}, middleware.Counters[int64]{}, middleware.HotKey{}, collector.Stats{}, hotkeys.WatcherStats{}, kafkasink.Stats{},
		limiter.FailoverStats{}, redislimiter.MembersStats{}, redislimiter.SemaphoreStats{},
	} {
		kind := reflect.TypeOf(stats)
		for i := range kind.NumField() {
			field := kind.Field(i)
			names := []string{field.Name}
			if field.Anonymous || stats == (middleware.HotKey{}) && slices.Contains(ofHotKey, field.Name) {
				continue
			}
			if field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[time.Time]() {
				names = nil
				for j := range field.Type.NumField() {
					names = append(names, field.Name+"."+field.Type.Field(j).Name)
				}
			}
			for _, name := range names {
				if !strings.Contains(text, "`"+name+"`") {
					t.Errorf("METRICS.md does not have %s of %s", name, kind)
				}
			}
		}
	}
}
