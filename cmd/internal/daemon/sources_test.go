package daemon

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/config"
)

// The transport is also described in words.
func TestTransportInWords(t *testing.T) {
	for settings, want := range map[string]string{
		"":                                    "StatsD to 127.0.0.1:8125",
		"aggregator: {listen: ':9'}":          "StatsD to :9",
		"statsd: {addresses: ['a:1', 'b:1']}": "StatsD to a:1, b:1, a part of the keys to each",
		"statsd: {addresses: ['a:1', 'b:1'], spread: all}\naggregator: {lease: true}": "StatsD to a:1, b:1, everything to each; one of them publishes",
		"aggregator: {listen: [':9', 'tcp://:9'], readers: 4}":                        "StatsD to :9",
		"statsd: {addresses: ['unix:///run/s'], encoding: strict, meta: false}":       "StatsD to unix:///run/s, keys strict, no meta lines",
		"aggregator: {source: graphite}":                                              "StatsD to 127.0.0.1:8125, keys strict, no meta lines; Graphite at http://127.0.0.1:8080, asked @every 1s for stats_counts.{name} in steps of 1s",
		"aggregator: {source: graphite}\nstatsd: {addresses: ['s:1', 't:1']}\ngraphite: {url: 'https://g', every: '@every 5s', series: 'stats.{name}', rate: true, user: u, password_env: P}": "StatsD to s:1, t:1, a part of the keys to each, keys strict, no meta lines; Graphite at https://g, asked @every 5s for stats.{name} (per second) in steps of 1s, as user u",
		"aggregator: {source: kafka}": "Kafka topic hotparam.counters at 127.0.0.1:9092, acks=1",
		"aggregator: {source: kafka}\nkafka: {topic: t, tls: true, acks: all, idempotent: true}":   "Kafka topic t at 127.0.0.1:9092, acks=all, idempotent, TLS",
		"aggregator: {source: kafka}\nkafka: {sasl: {mechanism: plain, user: u, password_env: P}}": "Kafka topic hotparam.counters at 127.0.0.1:9092, acks=1, SASL PLAIN in the clear",
	} {
		file, err := config.Parse("f.yaml", []byte(goodRules+settings))
		if err != nil {
			t.Fatal(err)
		}
		if got := TransportWords(file); got != want {
			t.Errorf("%s:\n%s, want\n%s", settings, got, want)
		}
	}
}

func TestGraphiteWords(t *testing.T) {
	for _, test := range []struct {
		g    config.Graphite
		want string
	}{
		{config.Graphite{URL: "http://g", TokenEnv: "T"}, "Graphite at http://g, asked @every 1s for stats_counts.{name} in steps of 1s, with a token in the clear"},
		{config.Graphite{URL: "https://g", TokenFile: "f", Step: 10 * time.Second}, "Graphite at https://g, asked @every 1s for stats_counts.{name} in steps of 10s, with a token"},
	} {
		if got := graphiteWords(test.g.WithDefaults()); got != test.want {
			t.Errorf("got\n%s, want\n%s", got, test.want)
		}
	}
}
