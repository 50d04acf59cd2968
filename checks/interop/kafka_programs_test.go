package interop

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
)

// language is a way to run programs with one Kafka client.
type language struct {
	name    string
	example string // in examples/producers/kafka
	keys    string // in testdata
	program func(*testing.T, *real.KafkaCluster) program
}

var languages = []language{
	{"Java", "CountSearch.java", "Keys.java", func(t *testing.T, k *real.KafkaCluster) program {
		return java(t, k.Classpath())
	}},
	{"kafka-python", "count_search.py", "keys.py", kafkaClients},
	{"confluent-kafka", "count_search_confluent.py", "keys_confluent.py", kafkaClients},
}

func kafkaClients(t *testing.T, _ *real.KafkaCluster) program {
	return program{words: []string{real.Python(t, kafkaPython, confluentKafka)}}
}

func (l *language) runExample(t *testing.T, k *real.KafkaCluster, term string) {
	t.Helper()
	l.program(t, k).run(t, example(filepath.Join("kafka", l.example)), "", strings.Join(k.Addrs(), ","), term)
}

func (l *language) runKeys(t *testing.T, k *real.KafkaCluster, keys string, topics ...string) {
	t.Helper()
	args := append([]string{strings.Join(k.Addrs(), ",")}, topics...)
	l.program(t, k).run(t, filepath.Join("testdata", l.keys), keys, args...)
}
