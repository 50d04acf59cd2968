package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/kafka"
	"pgregory.net/rapid"
)

// drawSettings draws all of a file but its rules.
func drawSettings(t *rapid.T) File {
	text := func(what string, values ...string) string {
		return rapid.SampledFrom(append(values, "")).Draw(t, what)
	}
	size := func(what string) int64 {
		return rapid.SampledFrom([]int64{0, 1 << 20, 64 << 20, 5_000_000}).Draw(t, what)
	}
	servers := func(what string) []string {
		drawn := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a:1", "b.example:8125", "[::1]:9092", "10.0.0.5:65535"}), 0, 3, rapid.ID[string]).Draw(t, what)
		return append([]string(nil), drawn...) // none is nil
	}
	times := func(what string) time.Duration {
		return rapid.SampledFrom([]time.Duration{0, time.Second, 1500 * time.Millisecond, time.Minute}).Draw(t, what)
	}
	var f File
	f.Aggregator = Aggregator{
		Source: text("source", SourceStatsD, SourceKafka), Name: text("name", "agg-1", "a.b_C"),
		Listen: text("listen", ":8125", "[::1]:1"), HTTP: text("http", ":9125"), Memory: size("memory"),
		Redis: Redis{URL: text("redis", "redis://h", "rediss://u:p@h:6380/2", "redis://s:26379?master_name=m&addr=s2:26379", "unix:///r.sock")},
	}
	if r := &f.Aggregator.Redis; rapid.Bool().Draw(t, "mapping") {
		r.Username, r.SentinelUsername, r.ServerName = text("user", "hotparam"), text("sentinel user", "watch er"), text("server", "r.example")
		r.PasswordEnv, r.SentinelPasswordFile = text("env", "REDIS_PASSWORD"), text("file", "/run/secrets/sentinel")
		r.Insecure = rapid.Bool().Draw(t, "insecure")
		if r.CA = text("ca", "ca.pem"); r.Insecure {
			r.CA = ""
		}
		if rapid.Bool().Draw(t, "cert") {
			r.Cert, r.Key = "c.pem", "k.pem"
		}
	}
	f.StatsD = StatsD{Addresses: servers("addresses"), Spread: text("spread", SpreadHash, SpreadAll)}
	f.Aggregator.Lease = f.Aggregator.Source != SourceKafka && f.Aggregator.Name == "" &&
		len(f.StatsD.Addresses) > 1 && f.StatsD.Spread == SpreadAll
	if len(f.conflicts()) > 0 {
		f.StatsD.Spread = SpreadHash
	}
	f.Kafka = Kafka{
		Connection: kafka.Connection{
			Brokers: servers("brokers"), ClientID: text("client", "shop-api"), Version: text("version", "3.6", "4.0.0"), Timeout: times("timeout"),
		},
		Topic: text("topic", "hotparam.counters", "t_1"), Acks: text("acks", AcksOne, AcksAll),
		Compression: text("compression", "zstd", "lz4", "none"), Buffer: size("buffer"),
		Group: text("group", "hotparam-shop"), Session: times("session"),
	}
	f.Kafka.Idempotent = f.Kafka.Acks == AcksAll && rapid.Bool().Draw(t, "idempotent")
	if rapid.Bool().Draw(t, "tls") {
		f.Kafka.TLS = &kafka.TLS{CA: text("kafka ca", "ca.pem"), ServerName: text("kafka server", "kafka.example")}
	}
	if rapid.Bool().Draw(t, "sasl") {
		f.Kafka.SASL = &kafka.SASL{
			Mechanism: rapid.SampledFrom([]string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}).Draw(t, "mechanism"),
			User:      "it's me", PasswordFile: "kafka.password",
		}
	}
	return f
}

// settings writes the sections of the settings; what is zero is left out.
func (w writer) settings(f *File) string {
	there := func(pairs []pair) []pair {
		return slices.DeleteFunc(pairs, func(p pair) bool { return p.value == "" })
	}
	section := func(name string, pairs []pair) string {
		if pairs = there(pairs); len(pairs) == 0 {
			return ""
		}
		return name + ": " + w.fields("  ", pairs...) + "\n"
	}
	text := func(s string) string {
		if s == "" {
			return ""
		}
		return w.text(s)
	}
	list := func(items []string) string {
		var quoted []string
		for _, item := range items {
			quoted = append(quoted, fmt.Sprintf("%q", item))
		}
		if quoted == nil {
			return ""
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	size := func(n int64) string {
		switch {
		case n == 0:
			return ""
		case n%(1<<20) == 0 && w.coin("MiB"):
			return fmt.Sprintf("%dMiB", n>>20)
		}
		return fmt.Sprint(n)
	}
	times := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	flag := func(b bool) string {
		if b || w.coin("false") {
			return fmt.Sprint(b)
		}
		return ""
	}
	braces := func(pairs []pair) string { return w.inline(there(pairs)) }
	a, k := f.Aggregator, f.Kafka
	redis := text(a.Redis.URL)
	if a.Redis != (Redis{URL: a.Redis.URL}) || w.coin("redis") {
		redis = braces([]pair{
			{"url", redis}, {"username", text(a.Redis.Username)}, {"password_file", text(a.Redis.PasswordFile)}, {"password_env", text(a.Redis.PasswordEnv)},
			{"sentinel_username", text(a.Redis.SentinelUsername)}, {"sentinel_password_file", text(a.Redis.SentinelPasswordFile)},
			{"sentinel_password_env", text(a.Redis.SentinelPasswordEnv)}, {"ca", text(a.Redis.CA)}, {"cert", text(a.Redis.Cert)}, {"key", text(a.Redis.Key)},
			{"server_name", text(a.Redis.ServerName)}, {"insecure", flag(a.Redis.Insecure)},
		})
	}
	var tls, sasl string
	switch {
	case k.TLS != nil && *k.TLS == kafka.TLS{} && w.coin("tls"):
		tls = "true"
	case k.TLS != nil:
		tls = braces([]pair{{"ca", text(k.TLS.CA)}, {"server_name", text(k.TLS.ServerName)}})
	case w.coin("no tls"):
		tls = "false"
	}
	if k.SASL != nil {
		mechanism := k.SASL.Mechanism
		if w.coin("lower") {
			mechanism = strings.ToLower(mechanism)
		}
		sasl = braces([]pair{{"mechanism", text(mechanism)}, {"user", text(k.SASL.User)}, {"password_file", text(k.SASL.PasswordFile)}})
	}
	return section("aggregator", []pair{
		{"source", text(a.Source)}, {"name", text(a.Name)}, {"lease", flag(a.Lease)}, {"listen", text(a.Listen)},
		{"redis", redis}, {"http", text(a.HTTP)}, {"memory", size(a.Memory)},
	}) + section("statsd", []pair{{"addresses", list(f.StatsD.Addresses)}, {"spread", text(f.StatsD.Spread)}}) +
		section("kafka", []pair{
			{"brokers", list(k.Brokers)}, {"topic", text(k.Topic)}, {"client_id", text(k.ClientID)}, {"version", text(k.Version)},
			{"tls", tls}, {"sasl", sasl}, {"timeout", times(k.Timeout)}, {"acks", text(k.Acks)}, {"idempotent", flag(k.Idempotent)},
			{"compression", text(k.Compression)}, {"buffer", size(k.Buffer)}, {"group", text(k.Group)}, {"session", times(k.Session)},
		})
}

// Settings that flags changed are checked as those of a file are.
func TestAgree(t *testing.T) {
	f := File{Aggregator: Aggregator{Source: SourceKafka, Lease: true}}
	if err := f.Agree(); err == nil || !strings.Contains(err.Error(), "aggregator.lease") {
		t.Errorf("lease with Kafka: %v", err)
	}
	f.Aggregator.Lease = false
	if err := f.Agree(); err != nil {
		t.Error(err)
	}
}

func TestStatsDDefaults(t *testing.T) {
	for _, test := range []struct {
		statsd StatsD
		listen string
		want   string
	}{
		{StatsD{}, "", "{[127.0.0.1:8125] hash}"},
		{StatsD{}, ":9", "{[:9] hash}"},
		{StatsD{Addresses: []string{"a:1"}, Spread: SpreadAll}, ":9", "{[a:1] all}"},
	} {
		if got := fmt.Sprint(test.statsd.WithDefaults(Aggregator{Listen: test.listen})); got != test.want {
			t.Errorf("%v: %s, want %s", test.statsd, got, test.want)
		}
	}
}

// A password that stands where none belongs is not shown.
func TestPasswordsAreNotShown(t *testing.T) {
	for _, source := range []string{
		"kafka: {sasl: {password: geheim, x: 1}}",
		"kafka:\n  sasl:\n    \"password\": 'geheim, sehr'\n    x: 1",
		"aggregator:\n  redis: {sentinel_password: geheim}",
		"aggregator: {redis: {url: 'redis://u:geheim@h', x: 1}}",
		"aggregator: {redis: 'http://u:geheim@h'}",
		"aggregator: {redis: {url: 'redis://h?master_name=m&password=geheim&sentinel_password=geheim', x: 1}}",
		"aggregator: {redis: {password_env: 'geheim geheim'}}",
	} {
		var text strings.Builder
		if err := problemsOf(t, source+"\n"+good).WriteText(&text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, "geheim") && !strings.Contains(source, "password_env") {
				t.Errorf("%s:\n%s", source, text.String())
				break
			}
		}
	}
}
