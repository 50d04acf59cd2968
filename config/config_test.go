package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

func route(t testing.TB, s string) rules.Route {
	t.Helper()
	r, err := rules.ParseRoute(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const full = `namespace: shop
evaluate: first
no_match: deny
secrets: {extra: [pin, otp], except: [token]}
aggregator: {listen: ":8125", readers: 2, canonical: true, redis: rediss://:pw@redis.example:6380/2, http: "[::1]:9125", memory: 256MiB}
statsd: {addresses: ["udp://a:8125", "[::1]:8125", unixgram:///run/s.sock], spread: hash, encoding: strict, meta: false}
graphite:
  url: https://graphite.example/base
  every: "@every 10s"
  offset: 500ms
  series: stats.counters.{name}.rate
  rate: true
  heartbeat: stats.statsd.numStats
  step: 10s
  timeout: 2s
  user: shop
  password_file: graphite.password
  tls: {ca: ca.pem, cert: cert.pem, key: key.pem, server_name: graphite.example}
kafka:
  brokers: [kafka-1:9092, "kafka-2:9092"]
  topic: shop.counters
  client_id: shop
  version: 3.6
  tls: {ca: ca.pem, cert: cert.pem, key: key.pem, server_name: kafka.example}
  sasl: {mechanism: SCRAM-SHA-512, user: shop, password_env: KAFKA_PASSWORD}
  timeout: 3s
  acks: all
  idempotent: true
  compression: lz4
  buffer: 32MiB
  group: shop
  session: 6s
rules:
  - id: search-terms
    match: {route: "GET /search/{id}", query: {filter: "*", page: 1, debug: true}}
    by: [q, path:id, query:id, "query:a:b", token]
    hot: {rate: 200/s, exit: 160/s, hold: 1m}
    limit: {rate: 50/s, burst: 100, scope: instance, on_limit: shadow, algorithm: token_bucket}
    prefix: shop
    key: params
  - id: health
    match: {route: GET /healthz}
    action: ignore
  - id: "7"
    match:
      route: '*'
    limit:
      rate: |
        60/1m
    key: full
    by: each
`

func TestFullFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hotparam.yaml")
	if err := os.WriteFile(path, []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Rules: &rules.Rules{
			Namespace: "shop", Evaluate: rules.EvaluateFirst, DenyNoMatch: true,
			Secrets: rules.NewSecrets([]string{"pin", "otp"}, []string{"token"}),
			Version: "3f846ebda4f10997", // which later releases say as well
			Rules: []rules.Rule{{
				ID: "search-terms",
				Match: rules.Match{Route: route(t, "GET /search/{id}"), Query: []rules.QueryMatch{
					{Name: "filter", Value: "*"}, {Name: "page", Value: "1"}, {Name: "debug", Value: "true"},
				}},
				By: rules.By{Kind: rules.ByNames, Names: []rules.Param{
					{Name: "q"}, {Source: rules.Path, Name: "id"}, {Name: "id"}, {Name: "a:b"}, {Name: "token"},
				}},
				Hot:    []rules.Threshold{{Rate: rules.Rate{N: 200, Per: time.Second}, Exit: rules.Percent(80), Hold: time.Minute, CoolDown: 5 * time.Second}},
				Limit:  &rules.Limit{Quota: rules.Quota{Algorithm: rules.TokenBucket, Rate: rules.Rate{N: 50, Per: time.Second}, Burst: 100}, Mode: rules.ModeShadow, Scope: rules.ScopeInstance},
				Prefix: "shop", ParamsOnly: true,
			}, {
				ID: "health", Match: rules.Match{Route: route(t, "GET /healthz")}, Ignore: true,
			}, {
				ID: "7", Match: rules.Match{Route: route(t, "*")}, By: rules.By{Kind: rules.ByEach},
				Limit: &rules.Limit{Quota: rules.Quota{Algorithm: rules.TokenBucket, Rate: rules.Rate{N: 60, Per: time.Minute}, Burst: 60}, Mode: rules.ModeLimit},
			}},
		},
		Aggregator: Aggregator{Listen: []string{":8125"}, Readers: 2, Canonical: true, Redis: Redis{URL: "rediss://:pw@redis.example:6380/2"}, HTTP: "[::1]:9125", Memory: 256 << 20},
		StatsD:     StatsD{Addresses: []string{"a:8125", "[::1]:8125", "unix:///run/s.sock"}, Spread: SpreadHash, Encoding: "strict", Meta: new(bool)},
		Kafka: Kafka{
			Connection: kafka.Connection{
				Brokers: []string{"kafka-1:9092", "kafka-2:9092"}, ClientID: "shop", Version: "3.6", Timeout: 3 * time.Second,
				TLS:  &kafka.TLS{CA: "ca.pem", Cert: "cert.pem", Key: "key.pem", ServerName: "kafka.example"},
				SASL: &kafka.SASL{Mechanism: "SCRAM-SHA-512", User: "shop", PasswordEnv: "KAFKA_PASSWORD"},
			},
			Topic: "shop.counters", Acks: AcksAll, Idempotent: true, Compression: "lz4", Buffer: 32 << 20, Group: "shop", Session: 6 * time.Second,
		},
		Graphite: Graphite{
			URL: "https://graphite.example/base", Every: "@every 10s", Offset: 500 * time.Millisecond, Series: "stats.counters.{name}.rate", Rate: true,
			Heartbeat: "stats.statsd.numStats", Step: 10 * time.Second, Timeout: 2 * time.Second, User: "shop", PasswordFile: "graphite.password",
			TLS: &kafka.TLS{CA: "ca.pem", Cert: "cert.pem", Key: "key.pem", ServerName: "graphite.example"},
		},
	}
	if !reflect.DeepEqual(content(f), content(want)) {
		t.Errorf("got\n%+v\n%+v\nwant\n%+v\n%+v", f, f.Rules, want, want.Rules)
	}
}

// defaults are the settings of a file that states none.
var defaults = Aggregator{
	Source: SourceStatsD, Listen: []string{"127.0.0.1:8125"}, Readers: 1,
	Redis: Redis{URL: "redis://127.0.0.1:6379/0"}, HTTP: "127.0.0.1:9125", Page: PageOn, Memory: 64 << 20,
	History: History{Keep: 7 * 24 * time.Hour, Memory: 64 << 20},
	Trust:   TrustAll, Caps: Caps{Counts: 100_000_000, Keys: 250_000, Names: 10_000, NewNames: 1_000},
}

func TestDefaults(t *testing.T) {
	f, err := Parse("f.yaml", []byte("rules:\n- {id: a, match: {route: '*'}, hot: {rate: 10/s}}\n- {id: b, match: {route: '*'}, limit: 5/s}"))
	if err != nil {
		t.Fatal(err)
	}
	r := f.Rules
	if r.Namespace != "hotparam" || r.Evaluate != rules.EvaluateAll || r.DenyNoMatch || !r.Secrets.Hides("token") {
		t.Errorf("top: %+v", r)
	}
	a, b := r.Rules[0], r.Rules[1]
	if a.By.Kind != rules.ByAll || a.Hot[0] != (rules.Threshold{Rate: a.Hot[0].Rate, Exit: rules.Percent(80), Hold: 10 * time.Second, CoolDown: 5 * time.Second}) || a.Limit != nil {
		t.Errorf("a: %+v, hot %+v", a, a.Hot)
	}
	if b.By.Kind != rules.ByNone || *b.Limit != (rules.Limit{Quota: rules.Quota{Algorithm: rules.TokenBucket, Rate: b.Limit.Rate, Burst: 5}, Mode: rules.ModeLimit}) || b.Hot != nil {
		t.Errorf("b: %+v, limit %+v", b, b.Limit)
	}
	if !reflect.DeepEqual(f.Aggregator, Aggregator{}) {
		t.Errorf("aggregator: %+v", f.Aggregator)
	}
	if got := f.Aggregator.WithDefaults(); !reflect.DeepEqual(got, defaults) {
		t.Errorf("with defaults: %+v", got)
	}
	own := Aggregator{Source: SourceKafka, Name: "a", Listen: []string{":1"}, Readers: 2, Redis: Redis{URL: "unix:///run/redis", Username: "u"}, HTTP: ":2", Page: PageOff, Memory: 3, History: History{On: true, Redis: Redis{URL: "unix:///run/history"}, Keep: time.Hour, Memory: 5}, Trust: TrustSigned, KeyEnv: "K", Caps: Caps{1, NoCap, 3, 4}}
	if got := own.WithDefaults(); !reflect.DeepEqual(got, own) {
		t.Errorf("with defaults: %+v, want %+v", got, own)
	}
	if got := f.Graphite.WithDefaults(); !reflect.DeepEqual(got, Graphite{URL: "http://127.0.0.1:8080", Step: time.Second}) {
		t.Errorf("graphite: %+v", got)
	}
	if got := f.Kafka.WithDefaults().Brokers; !reflect.DeepEqual(got, []string{"127.0.0.1:9092"}) {
		t.Errorf("brokers: %q", got)
	}
}

func TestExit(t *testing.T) {
	of := rules.NewFraction
	for text, want := range map[string]rules.Fraction{
		"80%": of(80, 100), "1%": of(1, 100), "100%": of(1, 1), "12.5 %": of(1, 8), "160/s": of(4, 5), "1/1s": of(1, 200), "200": of(1, 1), "1": of(1, 200),
		"' 7 '": of(7, 200), "33.3333333%": of(333333333, 1e9), "66%": of(66, 100), "050.500%": of(101, 200),
		"0.9e1%": {}, "0.999%": {}, "100.0000001%": {}, "33.33333333%": {}, "1.2.3%": {}, ".%": {}, "%": {},
	} {
		f, err := Parse("f.yaml", []byte(rule("hot: {rate: 200/s, exit: "+text+"}")))
		if want == (rules.Fraction{}) {
			if err == nil {
				t.Errorf("%s: is accepted", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := f.Rules.Rules[0].Hot[0].Exit; got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// The exit is the fraction in the file, however low min is. It is not rounded to a multiple of
// 1/min.
func TestExitWithLowMin(t *testing.T) {
	for _, terms := range []string{"share: 20%", "jump: 8x", "top: 3"} {
		for least := 1; least <= 20 && (least <= 4 || !testing.Short()); least++ {
			for percent := int64(1); percent <= 100; percent++ {
				text := fmt.Sprintf("{%s, min: %d/s, exit: %d%%}", terms, least, percent)
				f, err := Parse("f.yaml", []byte(rule("hot: "+text)))
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if got, want := f.Rules.Rules[0].Hot[0].Exit, rules.Percent(percent); got != want {
					t.Errorf("%s: %d, want %d", text, got, want)
				}
			}
		}
	}
}

// These wildcards are known to a router and not named by the route.
func TestByPathOfOpenRoutes(t *testing.T) {
	for pattern, good := range map[string]bool{
		"*": true, "/api/": true, "GET /api/": true, "/u/{id}": true, "/f/{id...}": true,
		"/u": false, "/u/{sku}": false, "/u/{$}": false, "users.Get": false,
	} {
		source := fmt.Sprintf("rules: [{id: a, match: {route: %q}, by: ['path:id'], limit: {rate: 1/s}}]", pattern)
		if _, err := Parse("f.yaml", []byte(source)); (err == nil) != good {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"64MB": 64_000_000, "256MiB": 256 << 20, "1 gib": 1 << 30, "2GB": 2e9, "3tb": 3e12, "1TiB": 1 << 40, "5KB": 5000, "6KiB": 6144, "7B": 7, "8": 8,
		"": -1, "MB": -1, "1.5GB": -1, "-1": -1, "9000000TiB": -1, "99999999999999999999": -1, "1MBit": -1,
	} {
		got, ok := ParseBytes(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q = %d, %v; want %d", text, got, ok, want)
		}
	}
}

func TestRedisURLs(t *testing.T) {
	for url, want := range map[string]bool{
		"redis://127.0.0.1:6379/0": true, "redis://h": true, "rediss://u:p@h:1/15": true, "unix:///run/redis.sock": true, "redis://[::1]:6379": true,
		"": false, "127.0.0.1:6379": false, "http://h": false, "redis://s1:26379/0?master_name=m&addr=s2:26379": true, "redis:///0": false, "redis://h/a": false, "unix://": false, "redis://h:x": false,
	} {
		if got := validRedis(url); got != want {
			t.Errorf("%q: %v, want %v", url, got, want)
		}
	}
}

// A rule with a cost counts time, and is a pool of its own unless it names a back end.
func TestCost(t *testing.T) {
	for fields, want := range map[string]struct {
		pool        string
		thresholds  int
		concurrency int
	}{
		"hot: {cost: auto}, limit: {concurrency: auto}":                          {"r", 1, rules.AutoConcurrency},
		"count: ms, hot: [{cost: auto}], limit: {concurrency: 3}, backend: db_1": {"db_1", 1, 3},
	} {
		f, err := Parse("f.yaml", []byte("rules: [{id: r, match: {route: GET /a}, by: [q], "+fields+"}]"))
		if err != nil {
			t.Error(err)
			continue
		}
		r := &f.Rules.Rules[0]
		if r.Count != rules.Millis || !r.HasCost() || !r.Whole() || len(r.Hot) != want.thresholds || r.Pool() != want.pool || r.Limit.Concurrency != want.concurrency {
			t.Errorf("%s: %+v", fields, r)
		}
	}
}

// The example in the repository agrees with its own comments.
func TestExampleFile(t *testing.T) {
	f, err := Load("../deploy/hotparam.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rules.Validate(); err != nil {
		t.Error(err)
	}
	if got := f.Aggregator.WithDefaults(); !reflect.DeepEqual(got, defaults) || f.Aggregator.Memory != defaults.Memory || !reflect.DeepEqual(f.Kafka, Kafka{}) || !reflect.DeepEqual(f.StatsD, StatsD{}) || !reflect.DeepEqual(f.Graphite, Graphite{}) {
		t.Errorf("the example has other settings than the defaults: %+v", f.Aggregator)
	}
	got := make(map[string]string)
	for _, r := range f.Rules.Rules {
		does := ""
		if r.Ignore {
			does += " ignore"
		}
		if len(r.Hot) > 0 {
			does += " hot"
		}
		if r.Limit != nil {
			does += " " + string(r.Limit.Mode)
		}
		got[r.ID] = r.Match.Route.String() + does
	}
	want := map[string]string{
		"health": "GET /healthz ignore", "search-terms": "GET /search hot limit", "products": "GET /products/{sku} hot shadow",
		"watch": "GET /browse/ hot", "countries": "GET /prices hot limit", "users": "GET /feed hot shadow", "downloads": "GET /files/{name} hot limit", "full-table": "GET /orders limit", "slow-report": "GET /report wait", "logins": "POST /login limit", "whole-api": "* limit",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// content returns the settings of a file, without its warnings.
func content(f *File) any {
	return struct {
		*rules.Rules
		Aggregator
		StatsD
		Kafka
		Graphite
	}{f.Rules, f.Aggregator, f.StatsD, f.Kafka, f.Graphite}
}
