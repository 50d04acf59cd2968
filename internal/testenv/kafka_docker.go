package testenv

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

// dockerBroker is a Kafka broker in a container. Brokers reach each other by name on
// a network of their own, clients by a port of the host.
type dockerBroker struct {
	dockerEngine // without its addr
	k            *KafkaCluster
	node         *kafkaNode
	network      *testcontainers.DockerNetwork
}

func kafkaImage() string {
	return cmp.Or(os.Getenv("HOTPARAM_KAFKA_IMAGE"), "apache/kafka:"+kafkaVersion)
}

func newDockerBrokers(k *KafkaCluster) error {
	ctx, cancel := context.WithTimeout(k.tb.Context(), patience)
	defer cancel()
	provider, err := testcontainers.NewDockerProvider(quiet)
	if err != nil {
		return err
	}
	k.tb.Cleanup(func() { provider.Close() })
	// A broker must know where clients find it before it starts.
	host, err := provider.DaemonHost(ctx)
	if err != nil {
		return fmt.Errorf("find Docker's host: %w", err)
	}
	if host == "localhost" {
		host = "127.0.0.1" // nothing listens on ::1
	}
	if k.config.TLS {
		k.certs = Certificates(k.tb, host)
	}
	net, err := tcnetwork.New(ctx)
	testcontainers.CleanupNetwork(k.tb, net)
	if err != nil {
		return fmt.Errorf("make a network in Docker: %w", err)
	}
	var voters []string
	for i := range k.config.Brokers {
		voters = append(voters, fmt.Sprintf("%d@kafka-%d:9093", i+1, i+1))
	}
	for i := range k.config.Brokers {
		name := fmt.Sprintf("kafka-%d", i+1)
		n := &kafkaNode{
			id: i + 1, bind: "0.0.0.0", client: FreePort(k.tb),
			internal: name + ":9092", controller: name + ":9093", voters: strings.Join(voters, ","),
			dir: "/tmp", data: "/tmp/kafka-data", jars: "/opt/kafka/libs",
		}
		n.addr = host + ":" + strconv.Itoa(n.client)
		n.advertised = advertised(k.config.Advertise, n.addr)
		k.addrs = append(k.addrs, n.addr)
		k.brokers = append(k.brokers, &dockerBroker{
			dockerEngine: dockerEngine{api: provider.Client()}, k: k, node: n, network: net,
		})
	}
	return nil
}

func (b *dockerBroker) start(ctx context.Context) error {
	if b.container != nil {
		return b.container.Start(ctx)
	}
	texts, err := b.k.files(b.node)
	if err != nil {
		return err
	}
	var files []testcontainers.ContainerFile
	for name, text := range texts {
		files = append(files, testcontainers.ContainerFile{
			Reader: bytes.NewReader(text), ContainerFilePath: b.node.path(name), FileMode: 0o644,
		})
	}
	name, _, _ := strings.Cut(b.node.internal, ":")
	port := network.MustParsePort(fmt.Sprintf("%d/tcp", b.node.client))
	c, err := testcontainers.Run(ctx, kafkaImage(),
		testcontainers.WithLogger(log.TestLogger(b.k.tb)),
		testcontainers.WithEntrypoint("sh", "-c", b.node.script(&b.k.config, b.k.id)),
		testcontainers.WithFiles(files...),
		tcnetwork.WithNetwork([]string{name}, b.network),
		testcontainers.WithExposedPorts(port.String()),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.PortBindings = network.PortMap{port: {{HostPort: strconv.Itoa(b.node.client)}}}
		}),
	)
	testcontainers.CleanupContainer(b.k.tb, c)
	if err != nil && !isFree(b.node.client) {
		return fmt.Errorf("%w: %s: %w", errPortTaken, b.node.addr, err)
	}
	if err != nil {
		return fmt.Errorf("run the image %s: %w", kafkaImage(), err)
	}
	b.container = c
	b.k.tb.Cleanup(func() {
		if b.k.tb.Failed() {
			logContainer(b.k.tb, c)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.k.tb.Context()), grace)
		defer cancel()
		_ = b.kill(ctx) // only to be quick: to be removed it would have ten seconds to end
	})
	return nil
}

func (b *dockerBroker) exited(ctx context.Context) error {
	state, err := b.container.State(ctx)
	if err != nil {
		return err
	}
	if !state.Running {
		return fmt.Errorf("its container is %s with exit code %d", state.Status, state.ExitCode)
	}
	return nil
}

func (b *dockerBroker) kill(ctx context.Context) error {
	if b.container == nil {
		return nil
	}
	return b.dockerEngine.kill(ctx)
}
