package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/hotparam/hotparam/rules"
)

// File is the content of a hotparam.yaml.
type File struct {
	Rules      *rules.Rules
	Aggregator Aggregator
	StatsD     StatsD
	Kafka      Kafka
	Graphite   Graphite
	Webhook    Webhook
	Guard      Guard
	// Instances is the number of instances that share limits, assumed until Redis reports
	// one. Zero means that the file has none.
	Instances int
	// RedactKey is the place of the key of Rules.Redact; see ReadRedactKey.
	RedactKey KeyPlace

	warnings  []Problem          // warnings about the rules
	listeners map[string]Problem // places of the addresses of aggregator.listen
}

// MaxSize is the size of the largest file that is read, in bytes.
const MaxSize = 1 << 20

// Load reads and parses the file at path. The error is [Problems], even if the file cannot be
// read; then it wraps the error of the file system.
func Load(path string) (*File, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Read returns the content of the file at path for [Parse], at most one byte more than
// [MaxSize]. Its error is the same as Load's.
func Read(path string) ([]byte, error) {
	data, err := read(path)
	if err != nil {
		// The problem already begins with the path.
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, Problems{{
			Severity: SeverityError, File: path, Line: 1, Column: 1,
			Message: fmt.Sprintf("cannot read: %v", err),
			Hint:    "name a file that exists and that this user may read",
			cause:   err,
		}}
	}
	return data, nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// Parse reads the content of a file. Problems use name as the file's name. The error is
// [Problems].
func Parse(name string, data []byte) (*File, error) {
	d := &decoder{text: newText(name, data)}
	f := d.file(data)
	if len(d.problems) > 0 {
		return nil, d.problems.arranged()
	}
	f.warnings = d.warnings
	f.Rules.Version = f.version()
	return f, nil
}

var topSection = section{
	name: "the file",
	fields: settings{
		{"namespace", shown(schemaForm(`^[A-Za-z0-9_-]{1,64}$`)), DefaultNamespace, "Keeps the fleets of one Redis apart"},
		{"evaluate", shown(schemaChoice("all", "first")), "", "Whether all rules that match a request apply, or only the first. Default: all"},
		{"no_match", shown(schemaChoice("allow", "deny")), "", "Decision for requests that no rule matches. Default: allow"},
		{"secrets", shown(new(secretSettings).settings().schema()), "", "Which parameters never leave the process"},
		{"client", shown(clientSettings(new(rules.Client)).schema()), "", "Whose address is the client's, for rules by addr:"},
		{"bodies", shown(bodiesSettings(new(rules.Bodies)).schema()), "", "How much of request bodies is read"},
		{"instances", shown(schemaWhole(1, maxInstances)), "", "How many instances share limits, until Redis says it"},
		{"max_keys", shown(schemaWhole(1, rules.MaxLimitKeys)), "", "How many keys each limit has places for in a process. Default: 65536"},
		{"aggregator", shown(new(Aggregator).settings().schema()), "", "The daemon"},
		{"statsd", shown(new(StatsD).settings().schema()), "", "How instances send counts as StatsD lines"},
		{"kafka", shown(new(Kafka).settings().schema()), "", "Counts by Kafka"},
		{"graphite", shown(new(Graphite).settings().schema()), "", "Counts from Graphite"},
		{"webhook", shown(new(Webhook).settings().schema()), "", "Posts events to a URL"},
		{"guard", shown(new(Guard).settings().schema()), "", "The guard as a service, for gateways and programs in any language"},
		{"rules", shown(schemaSome(ref("rule"))), "", "Which requests count, when a key is hot, and how it is limited"},
	},
	example: "begin with namespace: and rules:",
}

// DefaultNamespace is the namespace of a file without one.
const DefaultNamespace = "hotparam"

// file reads the whole file. The result is valid only if there are no problems.
func (d *decoder) file(data []byte) *File {
	if !d.readable(data) {
		return nil
	}
	root := d.parse()
	if root == nil {
		return nil
	}
	top := d.section(root, topSection)
	if top == nil {
		return nil
	}
	ruleset := &rules.Rules{Namespace: DefaultNamespace}
	if s, ok := d.scalar(top.get("namespace"), "namespace"); ok {
		ruleset.Namespace = s
	}
	if s, ok := d.choice(top.get("evaluate"), "evaluate", "all", "first"); ok && s == "first" {
		ruleset.Evaluate = rules.EvaluateFirst
	}
	if s, ok := d.choice(top.get("no_match"), "no_match", "allow", "deny"); ok {
		ruleset.DenyNoMatch = s == "deny"
	}
	redactKey := d.secrets(top.get("secrets"), ruleset)
	ruleset.Client = d.client(top.get("client"))
	ruleset.Bodies = d.bodies(top.get("bodies"))
	ruleset.LimitKeys = d.positiveInt(top.get("max_keys"), "max_keys")
	f := &File{
		Rules:      ruleset,
		RedactKey:  redactKey,
		Aggregator: d.aggregator(top.get("aggregator")),
		StatsD:     d.statsd(top.get("statsd")),
		Kafka:      d.kafka(top.get("kafka")),
		Graphite:   d.graphite(top.get("graphite")),
		Webhook:    d.webhook(top.get("webhook")),
		Guard:      d.guard(top.get("guard")),
		Instances:  d.instances(top.get("instances")),
	}
	if !top.has("rules") {
		d.report(root.pos, `add rules: with at least one rule, such as - {id: all, match: {route: "*"}, limit: {rate: 1000/s}}`,
			"rules is missing")
	}
	d.rules(top.get("rules"), ruleset)
	d.validate(ruleset, root)
	d.agree(f, root, top)
	if len(d.problems) == 0 {
		d.warnOfRules(ruleset, root)
		f.listeners = d.listeners(top.get("aggregator").fieldValue("listen"))
	}
	return f
}

// maxInstances bounds instances: a higher number is a typing error.
const maxInstances = 100_000

// instances reads the assumed number of instances.
func (d *decoder) instances(n *node) int {
	number := d.positiveInt(n, "instances")
	if number == invalid || number > maxInstances {
		d.reject(n, "for example 4", "instances %s: want a whole number of 1 to %d", quote(n.text), maxInstances)
	}
	return number
}
