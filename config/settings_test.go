package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// drawSettings draws all settings of a file that are consistent with its rules.
func drawSettings(t *rapid.T, ruleset *rules.Rules) File {
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
	places := func(what string, most int, values ...string) []string {
		drawn := rapid.SliceOfNDistinct(rapid.SampledFrom(append(values, "tcp://b:1", "unix:///run/a.sock", "unixstream:///run/b.sock")), 0, most, rapid.ID[string]).Draw(t, what)
		return append([]string(nil), drawn...) // none is nil
	}
	f := File{Rules: ruleset, Instances: rapid.SampledFrom([]int{0, 1, 40}).Draw(t, "instances")}
	f.Aggregator = Aggregator{
		Source: text("source", sources...), Name: text("name", "agg-1", "a.b_C"),
		Listen: places("listen", 3, ":8125", "[::1]:1", "tcp://:8125"), HTTP: text("http", ":9125"), Memory: size("memory"),
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
	if len(f.Aggregator.Listen) == 0 || anyListener(f.Aggregator.Listen, func(network string) bool { return network == "udp" }) {
		f.Aggregator.Readers = rapid.IntRange(0, maxReaders).Draw(t, "readers")
	}
	f.Aggregator.HoldDuringOutage = times("hold")
	f.Aggregator.SnapshotFile = text("snapshot file", "/var/lib/hotparam/snapshot")
	f.Aggregator.Canonical = rapid.Bool().Draw(t, "canonical")
	f.StatsD = StatsD{
		Addresses: places("addresses", 3, "a:1", "[::1]:9092"), Spread: text("spread", SpreadHash, SpreadAll), Encoding: text("encoding", "plain", "strict"),
		Meta: rapid.SampledFrom([]*bool{nil, new(bool)}).Draw(t, "meta"),
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
	f.Graphite = Graphite{
		URL: text("url", "http://g", "https://[::1]:8080/base/"), Every: text("every", "@every 2s", "*/5 * * * * *"), Offset: min(times("offset"), maxOffset),
		Series: text("series", "stats.counters.{name}.count", "{name}"), Rate: rapid.Bool().Draw(t, "rate"), Heartbeat: text("heartbeat", "none", "a.b_c-1"),
		Step: rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "step"), Timeout: times("request"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "who") {
	case 1:
		f.Graphite.User, f.Graphite.PasswordEnv = "it's me", "GRAPHITE_PASSWORD"
	case 2:
		f.Graphite.TokenFile = "/run/secrets/graphite"
	}
	if strings.HasPrefix(f.Graphite.URL, "https") && rapid.Bool().Draw(t, "graphite tls") {
		f.Graphite.TLS = &kafka.TLS{CA: "ca.pem", ServerName: text("graphite server", "graphite.example")}
	}
	if f.Aggregator.Source == SourceNone && slices.ContainsFunc(f.Rules.Rules, func(r rules.Rule) bool { return len(r.Hot) > 0 }) {
		f.Aggregator.Source = SourceKafka
	}
	if f.Aggregator.Source == SourceGraphite {
		f.Aggregator.Lease = f.Aggregator.Name == "" && rapid.Bool().Draw(t, "lease")
		if len(f.conflicts()) > 0 { // with the rules' windows, or with plain keys
			f.Aggregator.Source = SourceStatsD
		}
	}
	f.Guard = drawGuard(t)
	a := &f.Aggregator
	a.Pprof = text("pprof", "off", "on") == "on"
	if a.Page = text("page", PageOn, PageOff); a.Page == PageOn {
		a.PageTokenFile, a.PageHosts = "/run/secrets/page", []string{"hotparam.example", "10.0.0.5"}
	}
	switch a.Trust = text("trust", TrustAll, TrustListed, TrustSigned); {
	case a.Trust == TrustListed:
		a.Senders = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::7/128")}
	case a.Trust == TrustSigned || rapid.Bool().Draw(t, "key"):
		a.KeyFile = "/run/secrets/key"
	}
	if len(f.trustConflicts()) > 0 {
		a.Trust, a.Senders, a.KeyFile = "", nil, ""
	}
	if rapid.Bool().Draw(t, "history") {
		a.History = History{On: true, Keep: 36 * time.Hour, Memory: rapid.SampledFrom([]int64{0, 16 << 20}).Draw(t, "history memory")}
		a.History.Redis.URL = rapid.SampledFrom([]string{"", "redis://10.0.0.7:6379/1"}).Draw(t, "history redis")
	}
	a.Caps = Caps{Counts: rapid.SampledFrom([]int64{0, NoCap, 1_000_000}).Draw(t, "counts"), Names: rapid.SampledFrom([]int{0, NoCap, 500}).Draw(t, "names")}
	if f.Aggregator.Source == SourceStatsD || f.Aggregator.Source == "" {
		f.Aggregator.Lease = f.Aggregator.Name == "" && len(f.StatsD.Addresses) > 1 && f.StatsD.Spread == SpreadAll
		if len(f.conflicts()) > 0 {
			f.StatsD.Spread = SpreadHash
		}
	}
	return f
}

// settings writes the sections of the settings, and leaves out zero values.
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
	number := func(n int64) string {
		switch {
		case n == 0:
			return ""
		case n == NoCap:
			return "none"
		}
		return fmt.Sprint(n)
	}
	braces := func(pairs []pair) string { return w.inline(there(pairs)) }
	listen := list(f.Aggregator.Listen)
	if len(f.Aggregator.Listen) == 1 && w.coin("one") {
		listen = text(f.Aggregator.Listen[0])
	}
	meta, readers, caps, history := "", "", "", ""
	if h := f.Aggregator.History; h.On {
		history = braces([]pair{{"redis", text(h.Redis.URL)}, {"keep", times(h.Keep)}, {"memory", size(h.Memory)}})
	}
	if c := f.Aggregator.Caps; c != (Caps{}) {
		caps = braces([]pair{{"counts", number(c.Counts)}, {"names", number(int64(c.Names))}})
	}
	var senders []string
	for _, p := range f.Aggregator.Senders {
		senders = append(senders, strings.TrimSuffix(p.String(), "/128"))
	}
	if f.StatsD.Meta != nil {
		meta = fmt.Sprint(*f.StatsD.Meta)
	}
	if f.Aggregator.Readers > 0 {
		readers = fmt.Sprint(f.Aggregator.Readers)
	}
	a, k, g := f.Aggregator, f.Kafka, f.Graphite
	redis := text(a.Redis.URL)
	if a.Redis != (Redis{URL: a.Redis.URL}) || w.coin("redis") {
		redis = braces([]pair{
			{"url", redis}, {"username", text(a.Redis.Username)}, {"password_file", text(a.Redis.PasswordFile)}, {"password_env", text(a.Redis.PasswordEnv)},
			{"sentinel_username", text(a.Redis.SentinelUsername)}, {"sentinel_password_file", text(a.Redis.SentinelPasswordFile)},
			{"sentinel_password_env", text(a.Redis.SentinelPasswordEnv)}, {"ca", text(a.Redis.CA)}, {"cert", text(a.Redis.Cert)}, {"key", text(a.Redis.Key)},
			{"server_name", text(a.Redis.ServerName)}, {"insecure", flag(a.Redis.Insecure)},
		})
	}
	var tls, sasl, graphiteTLS string
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
	if g.TLS != nil {
		graphiteTLS = braces([]pair{{"ca", text(g.TLS.CA)}, {"server_name", text(g.TLS.ServerName)}})
	}
	return section("aggregator", []pair{
		{"source", text(a.Source)}, {"name", text(a.Name)}, {"lease", flag(a.Lease)}, {"listen", listen}, {"readers", readers}, {"canonical", flag(a.Canonical)},
		{"redis", redis}, {"hold_when_away", times(a.HoldDuringOutage)}, {"snapshot_file", text(a.SnapshotFile)}, {"http", text(a.HTTP)}, {"page", text(a.Page)}, {"pprof", text(map[bool]string{true: "on"}[a.Pprof])}, {"page_token_file", text(a.PageTokenFile)}, {"page_hosts", list(a.PageHosts)}, {"memory", size(a.Memory)}, {"history", history}, {"trust", text(a.Trust)}, {"senders", list(senders)}, {"key_file", text(a.KeyFile)}, {"caps", caps},
	}) + section("statsd", []pair{{"addresses", list(f.StatsD.Addresses)}, {"spread", text(f.StatsD.Spread)}, {"encoding", text(f.StatsD.Encoding)}, {"meta", meta}}) +
		section("kafka", []pair{
			{"brokers", list(k.Brokers)}, {"topic", text(k.Topic)}, {"client_id", text(k.ClientID)}, {"version", text(k.Version)},
			{"tls", tls}, {"sasl", sasl}, {"timeout", times(k.Timeout)}, {"acks", text(k.Acks)}, {"idempotent", flag(k.Idempotent)},
			{"compression", text(k.Compression)}, {"buffer", size(k.Buffer)}, {"group", text(k.Group)}, {"session", times(k.Session)},
		}) +
		section("graphite", []pair{
			{"url", text(g.URL)}, {"every", text(g.Every)}, {"offset", times(g.Offset)}, {"series", text(g.Series)}, {"rate", flag(g.Rate)},
			{"heartbeat", text(g.Heartbeat)}, {"step", times(g.Step)}, {"timeout", times(g.Timeout)},
			{"user", text(g.User)}, {"password_env", text(g.PasswordEnv)}, {"token_file", text(g.TokenFile)}, {"tls", graphiteTLS},
		}) + w.guard(f.Guard)
}

// Settings that flags changed are checked like those of a file.
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
	yes, no := true, false
	for _, test := range []struct {
		statsd     StatsD
		aggregator Aggregator
		want       StatsD
	}{
		{StatsD{}, Aggregator{}, StatsD{[]string{"127.0.0.1:8125"}, SpreadHash, "plain", &yes}},
		{StatsD{}, Aggregator{Listen: []string{":9", "tcp://:9"}}, StatsD{[]string{":9"}, SpreadHash, "plain", &yes}},
		{
			StatsD{Addresses: []string{"a:1"}, Spread: SpreadAll, Encoding: "strict", Meta: &no}, Aggregator{Listen: []string{":9"}},
			StatsD{[]string{"a:1"}, SpreadAll, "strict", &no},
		},
		{StatsD{}, Aggregator{Source: SourceGraphite, Listen: []string{":9"}}, StatsD{[]string{"127.0.0.1:8125"}, SpreadHash, "strict", &no}},
		{StatsD{Encoding: "plain", Meta: &yes}, Aggregator{Source: SourceGraphite}, StatsD{[]string{"127.0.0.1:8125"}, SpreadHash, "plain", &yes}},
	} {
		if got := test.statsd.WithDefaults(test.aggregator); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%+v: %+v, want %+v", test.statsd, got, test.want)
		}
	}
}

// A password in a place where it does not belong is not shown.
func TestPasswordsAreNotShown(t *testing.T) {
	for _, source := range []string{
		"kafka: {sasl: {password: geheim, x: 1}}",
		"kafka:\n  sasl:\n    \"password\": 'geheim, sehr'\n    x: 1",
		"aggregator:\n  redis: {sentinel_password: geheim}",
		"aggregator: {redis: {url: 'redis://u:geheim@h', x: 1}}",
		"aggregator: {redis: 'http://u:geheim@h'}",
		"aggregator: {redis: {url: 'redis://h?master_name=m&password=geheim&sentinel_password=geheim', x: 1}}",
		"aggregator: {redis: {password_env: 'geheim geheim'}}",
		"graphite: {token: geheim, x: 1}",
		"graphite: {url: 'http://u:geheim@h', x: 1}",
		"webhook: {secret: geheim, x: 1}",
		"webhook: {url: 'https://hooks.slack.com/services/T0/B0/geheim', x: 1}",
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
