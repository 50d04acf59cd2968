package real

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Clients have a listener of their own, so that their requirements (TLS, a password) do not apply
// to the brokers.
const (
	kafkaHeap = "-Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"

	kafkaLogging = `
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
`
)

// kafkaNode holds the addresses and paths of one broker.
type kafkaNode struct {
	id         int    // 1, 2, 3
	bind       string // the address to listen on
	addr       string // host:port at which clients reach it
	advertised string // host:port that it announces to them
	client     int    // port of addr on which the broker listens
	internal   string // host:port for other brokers
	controller string // host:port for other controllers
	voters     string // id@host:port of all controllers
	data       string // directory for all its data
	dir        string // directory of properties, logging and certificates
	jars       string
}

func (n *kafkaNode) path(name string) string { return n.dir + "/" + name }

// properties returns the broker's server.properties.
func (n *kafkaNode) properties(c *KafkaConfig, admin string) string {
	replicas := strconv.Itoa(c.Brokers)
	inSync := strconv.Itoa(min(c.Brokers, 2))
	p := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        strconv.Itoa(n.id),
		"controller.quorum.voters":       n.voters,
		"listeners":                      fmt.Sprintf("CLIENT://%s:%d,INTERNAL://%s:%s,CONTROLLER://%s:%s", n.bind, n.client, n.bind, portOf(n.internal), n.bind, portOf(n.controller)),
		"advertised.listeners":           fmt.Sprintf("CLIENT://%s,INTERNAL://%s,CONTROLLER://%s", n.advertised, n.internal, n.controller),
		"listener.security.protocol.map": "CLIENT:" + c.protocol() + ",INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name":     "INTERNAL",
		"controller.listener.names":      "CONTROLLER",
		"log.dirs":                       n.data,
		"auto.create.topics.enable":      "false",

		"default.replication.factor":               replicas,
		"min.insync.replicas":                      inSync,
		"offsets.topic.replication.factor":         replicas,
		"offsets.topic.num.partitions":             replicas,
		"transaction.state.log.replication.factor": replicas,
		"transaction.state.log.min.isr":            inSync,
		"transaction.state.log.num.partitions":     replicas,

		"group.initial.rebalance.delay.ms": "0",
		"log.cleaner.dedupe.buffer.size":   "2097152",
	}
	if c.TLS {
		p["listener.name.client.ssl.keystore.type"] = "PEM"
		p["listener.name.client.ssl.keystore.location"] = n.path(kafkaKeyStore)
		p["listener.name.client.ssl.truststore.type"] = "PEM"
		p["listener.name.client.ssl.truststore.location"] = n.path(kafkaTrustStore)
	}
	if c.ClientCerts {
		p["listener.name.client.ssl.client.auth"] = "required"
	}
	if c.Users != nil {
		p["listener.name.client.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
		p["listener.name.client.plain.sasl.jaas.config"] = plainLogins(c.Users, admin)
		scram := "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		p["listener.name.client.scram-sha-256.sasl.jaas.config"] = scram
		p["listener.name.client.scram-sha-512.sasl.jaas.config"] = scram
	}
	if c.Authorize {
		p["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		p["super.users"] = "User:ANONYMOUS;User:" + kafkaAdmin // the brokers themselves, and the tests' administrator
	}
	maps.Copy(p, c.Properties)

	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&text, "%s=%s\n", key, strings.ReplaceAll(p[key], `\`, `\\`))
	}
	return text.String()
}

func (c *KafkaConfig) protocol() string {
	switch {
	case c.TLS && c.Users != nil:
		return "SASL_SSL"
	case c.TLS:
		return "SSL"
	case c.Users != nil:
		return "SASL_PLAINTEXT"
	}
	return "PLAINTEXT"
}

func plainLogins(users map[string]string, admin string) string {
	var text strings.Builder
	text.WriteString("org.apache.kafka.common.security.plain.PlainLoginModule required")
	fmt.Fprintf(&text, ` user_%s="%s"`, kafkaAdmin, admin)
	for _, user := range slices.Sorted(maps.Keys(users)) {
		fmt.Fprintf(&text, ` user_%s="%s"`, user, users[user])
	}
	return text.String() + ";"
}

// script returns the shell script that runs the broker and, the first time, creates its storage.
// The shell becomes the broker, so signals reach the broker.
func (n *kafkaNode) script(c *KafkaConfig, cluster string) string {
	// The broker unpacks libraries of its codecs and leaves them behind if it is killed. In this
	// directory they are removed with the rest.
	java := fmt.Sprintf("java %s -Djava.io.tmpdir='%s' -Dlog4j2.configurationFile='%s' -cp '%s/*'", kafkaHeap, n.dir, n.path(kafkaLog), n.jars)
	var scram strings.Builder
	for _, user := range slices.Sorted(maps.Keys(c.Users)) {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			fmt.Fprintf(&scram, " --add-scram '%s=[name=%s,password=%s]'", mechanism, user, c.Users[user])
		}
	}
	return fmt.Sprintf("[ -f '%s/meta.properties' ] || %s kafka.tools.StorageTool format -t %s -c '%s'%s || exit\nexec %s kafka.Kafka '%s'\n",
		n.data, java, cluster, n.path(kafkaProperties), scram.String(), java, n.path(kafkaProperties))
}

// files returns the files that the broker reads, by their name in dir.
func (k *KafkaCluster) files(n *kafkaNode) (map[string][]byte, error) {
	files := map[string][]byte{
		kafkaProperties: []byte(n.properties(&k.config, k.adminPassword())),
		kafkaLog:        []byte(kafkaLogging),
	}
	if !k.config.TLS {
		return files, nil
	}
	for store, sources := range map[string][]string{
		kafkaKeyStore:   {k.certs.ServerKey, k.certs.ServerCert},
		kafkaTrustStore: {k.certs.CA},
	} {
		for _, source := range sources {
			text, err := os.ReadFile(source)
			if err != nil {
				return nil, err
			}
			files[store] = append(files[store], text...)
		}
	}
	return files, nil
}

const (
	kafkaProperties = "server.properties"
	kafkaLog        = "log4j2.properties"
	kafkaKeyStore   = "broker.pem"
	kafkaTrustStore = "ca.pem"
)

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
