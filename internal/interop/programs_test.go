package interop

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// The clients that are tested.
const (
	kafkaPython    = "kafka-python==3.0.12"
	confluentKafka = "confluent-kafka==2.16.1"
)

// language is a way to run programs with one Kafka client.
type language struct {
	name    string
	example string // in examples/producers
	keys    string // in testdata
	command func(*testing.T, *testenv.KafkaCluster) []string
}

var languages = []language{
	{"Java", "CountSearch.java", "Keys.java", func(t *testing.T, k *testenv.KafkaCluster) []string {
		return []string{testenv.Java(t), "-XX:TieredStopAtLevel=1", "-cp", k.Classpath()}
	}},
	{"kafka-python", "count_search.py", "keys.py", python},
	{"confluent-kafka", "count_search_confluent.py", "keys_confluent.py", python},
}

func python(t *testing.T, _ *testenv.KafkaCluster) []string {
	return []string{testenv.Python(t, kafkaPython, confluentKafka)}
}

func (l *language) runExample(t *testing.T, k *testenv.KafkaCluster, term string) {
	t.Helper()
	l.run(t, k, filepath.Join("..", "..", "examples", "producers", l.example), "", term)
}

func (l *language) runKeys(t *testing.T, k *testenv.KafkaCluster, keys string, topics ...string) {
	t.Helper()
	l.run(t, k, filepath.Join("testdata", l.keys), keys, topics...)
}

// run runs a program with the brokers and args, and gives it stdin to read. A minute
// is more than it takes on a busy machine.
func (l *language) run(t *testing.T, k *testenv.KafkaCluster, program, stdin string, args ...string) {
	t.Helper()
	words := append(l.command(t, k), program, strings.Join(k.Addrs(), ","))
	cmd := exec.Command(words[0], append(words[1:], args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	p := testenv.Start(t, cmd)
	select {
	case <-p.Exited():
	case <-time.After(time.Minute):
		t.Fatal("it runs for a minute already")
	}
	if code := p.Wait(); code != 0 {
		t.Fatalf("%s: exit code %d", l.name, code)
	}
}
