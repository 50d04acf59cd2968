package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/kafkafake"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

func fakeKafka(t *testing.T, topics ...string) string {
	t.Helper()
	broker, err := kafkafake.Start(4, topics...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return broker.Addr()
}

// If a daemon cannot read from Kafka, it reports the cause and the remedy within seconds. The exit
// code distinguishes wrong settings from an unreachable server.
func TestAggregatorExplainsKafka(t *testing.T) {
	path := write(t, goodRules+"kafka: {timeout: 500ms}\naggregator: {source: kafka, listen: '127.0.0.1:0', http: '127.0.0.1:0'}\n")
	t.Run("nobody there", func(t *testing.T) {
		nobody := unreachable(t)
		hotparamCommand(t, "aggregator", "--config", path, "--brokers", nobody).exits(t, exitUnreachable, nobody, "nothing listens at the address")
	})
	t.Run("no topic", func(t *testing.T) {
		broker := fakeKafka(t, "other")
		hotparamCommand(t, "aggregator", "--config", path, "--brokers", broker).exits(t, exitConfig, wire.DefaultTopic, "does not exist", "--create")
	})
	t.Run("no password file", func(t *testing.T) {
		path := write(t, goodRules+"aggregator: {source: kafka}\nkafka: {sasl: {mechanism: plain, user: u, password_file: /nowhere/kafka}}\n")
		hotparamCommand(t, "aggregator", "--config", path, "--brokers", unreachable(t)).exits(t, exitConfig, "/nowhere/kafka")
	})
}

func TestAggregatorKafkaSettings(t *testing.T) {
	path := write(t, goodRules)
	t.Setenv("HOTPARAM_REDIS", "redis://"+unreachable(t)) // valid settings are reported before Redis is asked
	t.Run("flag before variable before file", func(t *testing.T) {
		t.Setenv("HOTPARAM_SOURCE", "kafka")
		t.Setenv("HOTPARAM_BROKERS", "k1:1,k2:2")
		t.Setenv("HOTPARAM_TOPIC", "counts.a")
		hotparamCommand(t, "aggregator", "--config", path, "--dry-run", "--topic", "counts.b").exits(t, exitUnreachable, "Kafka topic counts.b at k1:1, k2:2")
		hotparamCommand(t, "aggregator", "--config", path, "--dry-run", "--source", "statsd").exits(t, exitUnreachable, "StatsD 127.0.0.1:8125")
	})
	for _, test := range []struct {
		name, file string
		flags      []string
		code       int
		says       []string
	}{
		{"no such source", "", []string{"--source", "udp"}, exitUsage, []string{"--source", `"udp"`, "statsd or kafka or graphite"}},
		{"no name", "", []string{"--name", "a b"}, exitUsage, []string{"--name", `"a b"`}},
		{"no broker", "", []string{"--brokers", "k1:1,k2"}, exitUsage, []string{"--brokers", `"k2"`}},
		{"lease and a name", "aggregator: {lease: true}\n", []string{"--name", "a"}, exitConfig, []string{"aggregator.lease", "remove name"}},
		{"lease and Kafka", "aggregator: {lease: true}\n", []string{"--source", "kafka"}, exitConfig, []string{"aggregator.lease"}},
		{"keys are shared", "statsd: {addresses: ['a:1', 'b:1']}\n", nil, exitConfig, []string{"no name", "--name", "HOTPARAM_NAME"}},
		{"keys are shared, with names", "statsd: {addresses: ['a:1', 'b:1']}\n", []string{"--name", "a"}, exitUnreachable, nil},
		{"each get all keys", "aggregator: {lease: true}\nstatsd: {addresses: ['a:1', 'b:1'], spread: all}\n", nil, exitUnreachable, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"aggregator", "--dry-run", "--config", write(t, goodRules+test.file)}, test.flags...)
			hotparamCommand(t, args...).exits(t, test.code, test.says...)
		})
	}
}

// Two daemons share the partitions, and publish keys from counts that a program in any language
// writes. When one ends, the other takes over all partitions, and no key cools.
func TestAggregatorsShareKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	redis := testenv.Redis(t)
	broker := fakeKafka(t, wire.DefaultTopic)
	args := []string{
		"--config", write(t, goodRules+"kafka: {session: 6s}\n"), "--source", "kafka", "--brokers", broker, "--redis", redis.URL(),
	}
	one := startDaemon(t, args...)
	eventually(t, one.is("ready: 4 partitions"))
	two := startDaemon(t, args...)
	eventually(t, two.is("ready: 2 partitions"))
	eventually(t, one.is("ready: 2 partitions"))

	producer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(wire.DefaultTopic))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	var hot []string
	produce := func() {
		for i := range 8 {
			key := fmt.Sprintf("GET%%20/search?q=%d", i)
			line := "shop.search-terms.hot_param." + key + ":300|c"
			if err := producer.ProduceSync(t.Context(), &kgo.Record{Key: []byte(key), Value: []byte(line)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	client, err := hotkeys.NewClient(redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	listed := func() error {
		keys, err := hotkeys.List(t.Context(), client, "shop")
		if hot = hot[:0]; err != nil {
			return err
		}
		for _, h := range keys {
			hot = append(hot, h.Key.Text)
		}
		if len(hot) != 8 {
			return fmt.Errorf("hot: %q, want 8", hot)
		}
		return nil
	}
	produce()
	eventually(t, listed)
	if code := one.end(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if err := listed(); err != nil {
		t.Error(err)
	}
	eventually(t, two.is("ready: 4 partitions"))
	if err := listed(); err != nil {
		t.Error(err)
	}
	eventually(t, two.serves(
		"hotparam_published_keys 8", "hotparam_kafka_partitions 4", `hotparam_kafka_lag_records{partition="3"} 0`,
		"hotparam_fenced 0", "hotparam_redis_connected 1",
	))
}

// If two daemons have a lease, one publishes, and the other takes over when that one ends.
func TestAggregatorsWithALease(t *testing.T) {
	redis := testenv.Redis(t)
	args := []string{
		"--config", write(t, goodRules+"aggregator: {lease: true}\n"), "--listen", "127.0.0.1:0", "--redis", redis.URL(),
	}
	one := startDaemon(t, args...)
	eventually(t, one.is("ready"))
	two := startDaemon(t, args...)
	eventually(t, two.is("standby: another aggregator publishes; this one takes over when it dies"))
	eventually(t, two.serves("hotparam_standby 1"))
	one.end()
	eventually(t, two.is("ready"))
	eventually(t, two.serves("hotparam_takeovers_total 1"))
}

// docs/KAFKA.md describes the same messages as the code of the source and the sink.
func TestKafkaMessagesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/KAFKA.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, pattern := range []string{"../../internal/kafkaclient/*.go", "../../internal/kafkasource/*.go", "../../collector/kafkasink/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	_, table, _ := strings.Cut(string(doc), "| message | what to do |")
	messages := regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(table, -1)
	if len(messages) < 10 {
		t.Fatalf("%d rows are found", len(messages))
	}
	for _, m := range messages {
		for part := range strings.SplitSeq(strings.ReplaceAll(m[1], "`, `", "…"), "…") {
			if part = strings.Trim(part, "` ,"); !strings.Contains(code.String(), part) {
				t.Errorf("%s: nothing says %q", m[1], part)
			}
		}
	}
}

// The image that deploy/compose.yaml runs reads this file.
func TestComposeRulesLint(t *testing.T) {
	const path = "../../deploy/hotparam-kafka.yaml"
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	hotparamCommand(t, "rules", "lint", path).exits(t, exitOK, "counts: Kafka topic hotparam.counters at kafka:9092, acks=1")
}
