package interop

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// language is a way to run programs with one Kafka client.
type language struct {
	name    string
	example string // in examples/producers/kafka
	keys    string // in testdata
	program func(*testing.T, *testenv.KafkaCluster) program
}

var languages = []language{
	{"Java", "CountSearch.java", "Keys.java", func(t *testing.T, k *testenv.KafkaCluster) program {
		return java(t, k.Classpath())
	}},
	{"kafka-python", "count_search.py", "keys.py", kafkaClients},
	{"confluent-kafka", "count_search_confluent.py", "keys_confluent.py", kafkaClients},
}

func kafkaClients(t *testing.T, _ *testenv.KafkaCluster) program {
	return program{words: []string{testenv.Python(t, kafkaPython, confluentKafka)}}
}

func (l *language) runExample(t *testing.T, k *testenv.KafkaCluster, term string) {
	t.Helper()
	l.program(t, k).run(t, example(filepath.Join("kafka", l.example)), "", strings.Join(k.Addrs(), ","), term)
}

func (l *language) runKeys(t *testing.T, k *testenv.KafkaCluster, keys string, topics ...string) {
	t.Helper()
	args := append([]string{strings.Join(k.Addrs(), ",")}, topics...)
	l.program(t, k).run(t, filepath.Join("testdata", l.keys), keys, args...)
}
