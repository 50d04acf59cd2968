package config

import (
	"regexp"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
)

// Kafka holds the settings for counts that travel through Kafka, section "kafka:" of the file.
// Instances that send and aggregators that read use them. Settings that the file lacks are
// zero, which sender and reader replace by their defaults. Only the brokers have a default in
// [Kafka.WithDefaults].
type Kafka struct {
	kafka.Connection
	// Topic is the topic of the counts.
	Topic string

	// Acks selects when a record counts as sent: [AcksOne] or [AcksAll].
	Acks string
	// Idempotent keeps a record that is sent twice from being stored twice. It needs
	// [AcksAll].
	Idempotent bool
	// Compression is zstd, lz4 or none.
	Compression string
	// Buffer is the number of bytes that may wait for unavailable brokers. Counts beyond that
	// are dropped and counted.
	Buffer int64

	// Group is the consumer group of the aggregators.
	Group string
	// Session is the time of silence after which an aggregator loses its partitions to the
	// others.
	Session time.Duration
}

// When a record counts as sent.
const (
	AcksOne = "1"
	AcksAll = "all"
)

// defaultBroker is the address of a broker on the same machine.
const defaultBroker = "127.0.0.1:9092"

// WithDefaults returns the settings with a default for the brokers.
func (k Kafka) WithDefaults() Kafka {
	if len(k.Brokers) == 0 {
		k.Brokers = []string{defaultBroker}
	}
	return k
}

var saslMechanisms = []string{"plain", "scram-sha-256", "scram-sha-512"}

// Bounds of times, at least as narrow as the brokers' defaults.
const (
	minTimeout, maxTimeout = 100 * time.Millisecond, time.Minute
	minSession, maxSession = time.Second, 30 * time.Minute
)

// minBuffer is the least buffer, which has room for a few records.
const minBuffer = 1 << 20

// settings returns the fields of the section.
func (k *Kafka) settings() settings {
	return settings{
		{"brokers", as(&k.Brokers, schemaSome(schemaForm(`:[0-9]+$`)), func(d *decoder, n *fileNode, what string) []string {
			return d.servers(n, what, "kafka-1:9092")
		}), "", "Brokers, each as host:port. Default: " + defaultBroker},
		{"topic", nameInKafka(&k.Topic, "hotparam.counters"), "", "Default: " + wire.DefaultTopic},
		{"client_id", nameInKafka(&k.ClientID, "hotparam"), "", "Name of the client at the brokers"},
		{"version", written(&k.Version, "", "the oldest release among the brokers; by default it is detected", `a Kafka release, for example "3.6"`, release.MatchString).shownAs(schemaText), "", `The oldest release among the brokers, for example "3.6"`},
		{"tls", as(&k.TLS, anyOf(schemaFlag, ref("tls")), (*decoder).kafkaTLS), "", "true, or fields"},
		{"sasl", as(&k.SASL, saslSettings(new(kafka.SASL)).form("mechanism", "user"), (*decoder).sasl), "", "User and password for the brokers"},
		{"timeout", span(&k.Timeout, "5s", minTimeout, maxTimeout), "", "Bounds a request to a broker"},
		{"acks", choice(&k.Acks, AcksOne, AcksAll).shownAs(formOf(schema{"enum": []any{AcksOne, AcksAll, 1}})), "", "Default: 1"},
		{"idempotent", flag(&k.Idempotent), "", "Makes brokers drop duplicates; needs acks: all"},
		{"compression", choice(&k.Compression, "zstd", "lz4", "none"), "", "Default: zstd"},
		{"buffer", size(&k.Buffer, "16MiB holds what a busy instance counts in minutes", minBuffer), "", "Memory of the counts that wait for the brokers"},
		{"group", nameInKafka(&k.Group, "hotparam-shop"), "", "Consumer group. Default: hotparam-namespace"},
		{"session", span(&k.Session, "10s", minSession, maxSession), "", "Time without a heartbeat after which an aggregator counts as dead"},
	}
}

func saslSettings(s *kafka.SASL) settings {
	var words []string // in lower or upper case
	for _, m := range saslMechanisms {
		words = append(words, m, strings.ToUpper(m))
	}
	return settings{
		{"mechanism", as(&s.Mechanism, schemaChoice(words...), (*decoder).mechanism), "", ""},
		{"user", word(&s.User), "", ""},
		{"password_file", word(&s.PasswordFile), "", ""},
		{"password_env", variable(&s.PasswordEnv), "", ""},
	}
}

const kafkaExample = "for example kafka: {brokers: [kafka-1:9092, kafka-2:9092]}"

func (k *Kafka) check(d *decoder, n *fileNode, v values) {
	if k.Idempotent && k.Acks != AcksAll {
		d.reject(v.get("idempotent"), "add acks: all, or remove idempotent", "kafka.idempotent needs acks: all")
	}
	if full := k.WithDefaults(); !n.anyBad() {
		if err := full.Validate(); err != nil { // Validate checks the rest
			d.reject(n, kafkaExample, "kafka.%v", err)
		}
	}
}

var kafkaName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// nameInKafka returns the value for a name that Kafka accepts.
func nameInKafka(to *string, example string) fieldBinding {
	return written(to, kafkaName.String(), "for example "+example, "1 to 249 of A-Z a-z 0-9 . _ -", func(s string) bool {
		return kafkaName.MatchString(s) && s != "." && s != ".."
	})
}

var release = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3}){1,2}$`)

// kafkaTLS reads true, false, or fields. It returns nil for false.
func (d *decoder) kafkaTLS(n *fileNode, what string) *kafka.TLS {
	switch {
	case n.kind != scalarKind:
		return d.tls(n, what)
	case d.flag(n, what):
		return &kafka.TLS{}
	}
	return nil
}

// mechanism reads a word that may be written in upper or lower case.
func (d *decoder) mechanism(n *fileNode, what string) string {
	lower := *n
	if lower.kind == scalarKind {
		lower.text = strings.ToLower(n.text)
	}
	s, _ := d.choice(&lower, what, saslMechanisms...)
	return strings.ToUpper(s)
}

func (d *decoder) sasl(n *fileNode, what string) *kafka.SASL {
	const example = "for example sasl: {mechanism: scram-sha-512, user: hotparam, password_file: kafka.password}"
	s := new(kafka.SASL)
	v := d.settings(n, what, example, saslSettings(s))
	if v == nil {
		return nil
	}
	d.require(n, v, what, example, "mechanism", "user")
	if !v.has("password_file") && !v.has("password_env") {
		d.reject(n, example, "%s has neither password_file nor password_env", what)
	}
	return s
}
