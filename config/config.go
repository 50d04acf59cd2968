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
		{"client", as(&r.Client, clientSettings(new(rules.Client)).form(), (*decoder).client), "", "Whose address is the client's, for rules by addr:"},
		{"bodies", as(&r.Bodies, bodiesSettings(new(rules.Bodies)).form(), (*decoder).bodies), "", "How much of request bodies is read"},
		{"instances", as(&f.Instances, schemaWhole(1, maxInstances), (*decoder).instances), "", "Number of instances that share limits, until Redis reports it"},
		{"max_keys", positive(&r.LimitKeys, rules.MaxLimitKeys), "", "Keys of each limit that have a place of their own in a process. Default: 65536"},
		{"aggregator", as(&f.Aggregator, f.Aggregator.settings().form(), (*decoder).aggregator), "", "The daemon"},
		{"statsd", as(&f.StatsD, f.StatsD.settings().form(), (*decoder).statsd), "", "How instances send counts as StatsD lines"},
		{"kafka", as(&f.Kafka, f.Kafka.settings().form(), (*decoder).kafka), "", "Counts by Kafka"},
		{"graphite", as(&f.Graphite, f.Graphite.settings().form(), (*decoder).graphite), "", "Counts from Graphite"},
		{"webhook", as(&f.Webhook, f.Webhook.settings().form(), (*decoder).webhook), "", "Posts events to a URL"},
		{"guard", as(&f.Guard, f.Guard.settings().form(), (*decoder).guard), "", "The guard as a service, for gateways and programs in any language"},
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
