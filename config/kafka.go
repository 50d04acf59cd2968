package config

import (
	"regexp"
	"strings"
	"time"

	"github.com/hotparam/hotparam/kafka"
)

// Kafka is how counts travel by Kafka, section "kafka:" of the file: for
// instances that send and aggregators that read. What the file does not say is
// zero, which sender and reader take for their defaults, the brokers aside:
// those [Kafka.WithDefaults] fills in.
type Kafka struct {
	kafka.Connection
	// Topic holds the counts.
	Topic string

	// Acks is when a record counts as sent: [AcksOne] or [AcksAll].
	Acks string
	// Idempotent keeps a record that is sent again from being there twice. It needs
	// [AcksAll].
	Idempotent bool
	// Compression is zstd, lz4 or none.
	Compression string
	// Buffer is how many bytes wait for brokers that are away; what comes
	// beyond that is dropped and counted.
	Buffer int64

	// Group is the consumer group of the aggregators.
	Group string
	// Session is after which time of silence an aggregator loses its
	// partitions to the others.
	Session time.Duration
}

// When a record counts as sent.
const (
	AcksOne = "1"
	AcksAll = "all"
)

// defaultBroker is a broker on the same machine.
const defaultBroker = "127.0.0.1:9092"

// WithDefaults returns the settings with the default for the brokers.
func (k Kafka) WithDefaults() Kafka {
	if len(k.Brokers) == 0 {
		k.Brokers = []string{defaultBroker}
	}
	return k
}

var kafkaSection = section{
	name: "kafka", prefix: "kafka.",
	fields: []string{
		"brokers", "topic", "client_id", "version", "tls", "sasl", "timeout",
		"acks", "idempotent", "compression", "buffer", "group", "session",
	},
	example: "for example kafka: {brokers: [kafka-1:9092, kafka-2:9092]}",
}

var saslSection = section{
	name: "kafka.sasl", prefix: "kafka.sasl.",
	fields:  []string{"mechanism", "user", "password_file", "password_env"},
	example: "for example sasl: {mechanism: scram-sha-512, user: hotparam, password_file: kafka.password}",
}

var saslMechanisms = []string{"plain", "scram-sha-256", "scram-sha-512"}

// Bounds of times, as brokers have them by default or better.
const (
	minTimeout, maxTimeout = 100 * time.Millisecond, time.Minute
	minSession, maxSession = time.Second, 30 * time.Minute
)

// minBuffer is the least that a few records fit in.
const minBuffer = 1 << 20

func (d *decoder) kafka(n *node) Kafka {
	before := len(d.problems)
	v := d.section(n, kafkaSection)
	var k Kafka
	k.Brokers = d.servers(v.get("brokers"), "kafka.brokers", "kafka-1:9092")
	k.Topic = d.kafkaName(v.get("topic"), "kafka.topic", "hotparam.counters")
	k.ClientID = d.kafkaName(v.get("client_id"), "kafka.client_id", "hotparam")
	k.Version = d.kafkaVersion(v.get("version"))
	k.TLS = d.kafkaTLS(v.get("tls"))
	k.SASL = d.sasl(v.get("sasl"))
	k.Timeout = d.span(v.get("timeout"), "kafka.timeout", "5s", minTimeout, maxTimeout)

	k.Acks, _ = d.choice(v.get("acks"), "kafka.acks", AcksOne, AcksAll)
	k.Idempotent = d.flag(v.get("idempotent"), "kafka.idempotent")
	if k.Idempotent && k.Acks != AcksAll {
		d.reject(v.get("idempotent"), "add acks: all, or remove idempotent", "kafka.idempotent needs acks: all")
	}
	k.Compression, _ = d.choice(v.get("compression"), "kafka.compression", "zstd", "lz4", "none")
	k.Buffer = d.size(v.get("buffer"), "kafka.buffer", "16MiB holds what a busy instance counts in minutes", minBuffer)

	k.Group = d.kafkaName(v.get("group"), "kafka.group", "hotparam-shop")
	k.Session = d.span(v.get("session"), "kafka.session", "10s", minSession, maxSession)

	if full := k.WithDefaults(); n != nil && len(d.problems) == before {
		if err := full.Validate(); err != nil { // what it knows better
			d.reject(n, kafkaSection.example, "kafka.%v", err)
		}
	}
	return k
}

var kafkaName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// kafkaName reads a name as Kafka has them.
func (d *decoder) kafkaName(n *node, what, example string) string {
	s, ok := d.scalar(n, what)
	if ok && (!kafkaName.MatchString(s) || s == "." || s == "..") {
		d.reject(n, "for example "+example, "%s %s: want 1 to 249 of A-Z a-z 0-9 . _ -", what, quote(s))
	}
	return s
}

var release = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3}){1,2}$`)

func (d *decoder) kafkaVersion(n *node) string {
	s, ok := d.scalar(n, "kafka.version")
	if ok && !release.MatchString(s) {
		d.reject(n, `the oldest release among the brokers; without it they tell`, `kafka.version %s: want a release, for example "3.6"`, quote(s))
	}
	return s
}

// kafkaTLS reads true, false, or fields; nil is no TLS.
func (d *decoder) kafkaTLS(n *node) *kafka.TLS {
	switch {
	case n == nil:
		return nil
	case n.kind != scalarKind:
		return d.tls(n, "kafka.tls")
	case d.flag(n, "kafka.tls"):
		return &kafka.TLS{}
	}
	return nil
}

func (d *decoder) sasl(n *node) *kafka.SASL {
	if n == nil {
		return nil
	}
	v := d.section(n, saslSection)
	if v == nil {
		return nil
	}
	s := &kafka.SASL{User: d.word(v.get("user"), "kafka.sasl.user")}
	mechanism := v.get("mechanism")
	if mechanism != nil && mechanism.kind == scalarKind { // written in both cases
		lower := *mechanism
		lower.text = strings.ToLower(mechanism.text)
		mechanism = &lower
	}
	word, _ := d.choice(mechanism, "kafka.sasl.mechanism", saslMechanisms...)
	s.Mechanism = strings.ToUpper(word)
	s.PasswordFile, s.PasswordEnv = d.password(v, saslSection.prefix, "password")
	for _, name := range []string{"mechanism", "user"} {
		if !v.has(name) {
			d.reject(n, saslSection.example, "kafka.sasl.%s is missing", name)
		}
	}
	if !v.has("password_file") && !v.has("password_env") {
		d.reject(n, saslSection.example, "kafka.sasl has neither password_file nor password_env")
	}
	return s
}
