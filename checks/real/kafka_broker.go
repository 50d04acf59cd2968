package real

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/internal/testenv"
)

// kafkaBroker is a Kafka broker that is a child of the test process.
type kafkaBroker struct {
	k       *KafkaCluster
	node    *kafkaNode
	script  string
	process *testenv.Process // nil before the first start
}

func newBrokers(k *KafkaCluster) error {
	jars := needKafka(k.tb)
	if k.config.TLS {
		k.certs = testenv.Certificates(k.tb)
	}
	var voters []string
	var nodes []*kafkaNode
	for i := range k.config.Brokers {
		dir := k.tb.TempDir()
		n := &kafkaNode{
			id: i + 1, bind: "127.0.0.1", client: testenv.FreePort(k.tb),
			internal: testenv.Loopback(testenv.FreePort(k.tb)), controller: testenv.Loopback(testenv.FreePort(k.tb)),
			dir: dir, data: filepath.Join(dir, "data"), jars: jars,
		}
		n.addr = testenv.Loopback(n.client)
		n.advertised = testenv.Advertised(k.config.Advertise, n.addr)
		voters = append(voters, fmt.Sprintf("%d@%s", n.id, n.controller))
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		n.voters = strings.Join(voters, ",")
		files, err := k.files(n)
		if err != nil {
			return err
		}
		for name, text := range files {
			if err := os.WriteFile(n.path(name), text, 0o600); err != nil {
				return err
			}
		}
		b := &kafkaBroker{k: k, node: n, script: n.script(&k.config, k.id)}
		k.brokers = append(k.brokers, b)
		k.addrs = append(k.addrs, n.addr)
	}
	return nil
}

func (b *kafkaBroker) start() {
	b.process = testenv.Start(b.k.tb, exec.Command("sh", "-c", b.script))
	// Kill it, since on a request to end a broker would wait for peers that have ended.
	b.k.tb.Cleanup(func() { b.process.Kill() })
}

// exited returns an error if the broker has ended.
func (b *kafkaBroker) exited() error {
	if !b.process.HasExited() {
		return nil
	}
	for _, addr := range []string{b.node.addr, b.node.internal, b.node.controller} {
		_, port, _ := net.SplitHostPort(addr)
		if n, err := strconv.Atoi(port); err == nil && !testenv.IsFree(n) {
			return fmt.Errorf("%w: %s; %s", testenv.ErrPortTaken, addr, b.process.Describe())
		}
	}
	return fmt.Errorf("it ended: %s", b.process.Describe())
}
