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

// DefaultNamespace is the namespace of a file without one.
const DefaultNamespace = "hotparam"

// fileExample is the hint for a text that is no such file.
const fileExample = "begin with namespace: and rules:"

func newFile() *File { return &File{Rules: &rules.Rules{Namespace: DefaultNamespace}} }

// settings returns the fields of the file.
func (f *File) settings() settings {
	r := f.Rules
	return settings{
		{"namespace", plain(&r.Namespace, schemaForm(`^[A-Za-z0-9_-]{1,64}$`)), DefaultNamespace, "Keeps the fleets of one Redis apart"},
		{"evaluate", enum(&r.Evaluate, rules.EvaluateAll, "all", "first"), "", "Whether all rules that match a request apply, or only the first. Default: all"},
		{"no_match", isWord(&r.DenyNoMatch, "deny", "allow", "deny"), "", "Decision for requests that no rule matches. Default: allow"},
		{"secrets", as(&f.RedactKey, new(secretSettings).settings().form(), func(d *decoder, n *fileNode, what string) KeyPlace {
			return d.secrets(n, what, r)
		}), "", "Which parameters never leave the process"},
		{"client", clientValue(&r.Client), "", "Whose address is the client's, for rules by addr:"},
		{"bodies", within(&r.Bodies, bodiesSettings(&r.Bodies), bodiesExample, notEmpty("bodies", bodiesExample)), "", "How much of request bodies is read"},
		{"instances", as(&f.Instances, schemaWhole(1, maxInstances), (*decoder).instances), "", "Number of instances that share limits, until Redis reports it"},
		{"max_keys", positive(&r.LimitKeys, rules.MaxLimitKeys), "", "Keys of each limit that have a place of their own in a process. Default: 65536"},
		{"aggregator", within(&f.Aggregator, f.Aggregator.settings(), "for example aggregator: {listen: 127.0.0.1:8125, redis: redis://127.0.0.1:6379/0}", f.Aggregator.check), "", "The daemon"},
		{"statsd", within(&f.StatsD, f.StatsD.settings(), "for example statsd: {addresses: [10.0.0.5:8125, 10.0.0.6:8125], spread: hash}"), "", "How instances send counts as StatsD lines"},
		{"kafka", within(&f.Kafka, f.Kafka.settings(), kafkaExample, f.Kafka.check), "", "Counts by Kafka"},
		{"graphite", within(&f.Graphite, f.Graphite.settings(), "for example graphite: {url: http://graphite.example:8080}", f.Graphite.check), "", "Counts from Graphite"},
		{"webhook", within(&f.Webhook, f.Webhook.settings(), webhookExample, f.Webhook.check), "", "Posts events to a URL"},
		{"guard", within(&f.Guard, f.Guard.settings(), `for example guard: {rls: {listen: "127.0.0.1:9131"}}`, f.Guard.check), "", "The guard as a service, for gateways and programs in any language"},
		{"rules", as(&r.Rules, schemaSome(ref("rule")), (*decoder).rules), "", "Which requests count, when a key is hot, and how it is limited"},
	}
}

// file reads the whole file. The result is valid only if there are no problems.
func (d *decoder) file(data []byte) *File {
	if !d.readable(data) {
		return nil
	}
	root := d.parse()
	if root == nil {
		return nil
	}
	f := newFile()
	top := d.section(root, section{name: "the file", fields: f.settings(), example: fileExample})
	if top == nil {
		return nil
	}
	if !top.has("rules") {
		d.report(root.pos, `add rules: with at least one rule, such as - {id: all, match: {route: "*"}, limit: {rate: 1000/s}}`,
			"rules is missing")
	}
	d.validate(f.Rules, root)
	d.agree(f, root, top)
	if len(d.problems) == 0 {
		d.warnOfRules(f.Rules, root)
		f.listeners = d.listeners(top.get("aggregator").fieldValue("listen"))
	}
	return f
}

// maxInstances bounds instances: a higher number is a typing error.
const maxInstances = 100_000

// instances reads the assumed number of instances.
func (d *decoder) instances(n *fileNode, what string) int {
	number := d.positive(n, what)
	if number == invalid || number > maxInstances {
		d.reject(n, "for example 4", "instances %s: want a whole number of 1 to %d", quote(n.text), maxInstances)
	}
	return number
}
