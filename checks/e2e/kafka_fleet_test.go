package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/hotkeys"
)

// partitions is how many the counts are spread over.
const partitions = 12

// session is after which time an aggregator that is not heard of loses its
// partitions.
const session = 1500 * time.Millisecond

// kafkaFleet is a fleet whose counts travel over a real Kafka.
type kafkaFleet struct {
	*fleet
	kafka  *real.KafkaCluster
	topic  string
	acks   string
	buffer string

	variables []string // of the instances' environment
}

// newKafkaFleet makes a topic for its counts; what goes wrong with Redis is the
// caller's doing.
func newKafkaFleet(t *testing.T, kafka *real.KafkaCluster, redisURL, acks, rules string) *kafkaFleet {
	t.Helper()
	client, err := hotkeys.NewClient(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	f := &kafkaFleet{kafka: kafka, topic: "counters-acks-" + acks, acks: acks, buffer: "16MiB", fleet: &fleet{
		t: t, bin: quickCommands(t), client: client, layout: hotkeys.NewLayout("shop"), rules: rules, memory: "16MB",
		redisURL: redisURL, beat: 10 * time.Second,
		settles: 10 * time.Second, // who takes a partition over awaits the instances, and they begin late on a busy machine
		http: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
			Timeout:   patience,
		},
	}}
	t.Cleanup(func() {
		f.http.CloseIdleConnections()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	config := map[string]string{"message.timestamp.type": "LogAppendTime"}
	replicas := len(kafka.Addrs())
	if replicas == 3 {
		config["min.insync.replicas"] = "2"
	}
	kafka.CreateTopic(f.topic, partitions, replicas, config)
	return f
}

// config writes a configuration file for one process.
func (f *kafkaFleet) config(name string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "hotparam.yaml")
	text := fmt.Sprintf(`namespace: shop
aggregator: {source: kafka, name: %s, redis: "%s", http: "127.0.0.1:0", memory: %s}
kafka: {brokers: ["%s"], topic: %s, acks: "%s", session: %v, buffer: %s}
rules:%s`, name, f.redisURL, f.memory, strings.Join(f.kafka.Addrs(), `", "`), f.topic, f.acks, session, f.buffer, f.rules)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f *kafkaFleet) startAggregator(name string) *daemon {
	f.t.Helper()
	p := f.start(f.bin.hotparam, "aggregator", "--config", f.config(name))
	return &daemon{p, f.fleet, "http://" + p.WaitFor(`aggregator is up.* http=(\S+)`)[1]}
}

func (f *kafkaFleet) startAggregators(names ...string) []*daemon {
	f.t.Helper()
	all := make([]*daemon, len(names))
	for i, name := range names {
		all[i] = f.startAggregator(name)
	}
	return all
}

func (f *kafkaFleet) startAPIs(n int) []*api {
	f.t.Helper()
	apis := make([]*api, n)
	for i := range apis {
		p := f.startWith(f.variables, f.bin.api, "--listen", "127.0.0.1:0", "--config", f.config("api"))
		apis[i] = &api{p, f.fleet, "http://" + p.WaitFor(`api is up.* address=(\S+)`)[1]}
	}
	return apis
}
