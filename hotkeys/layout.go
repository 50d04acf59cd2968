package hotkeys

// Layout names what a namespace has in Redis. All names share one hash tag, so
// that one script may touch them all in a cluster. See docs/design/redis.md for what
// each holds, and package wire for the bytes.
type Layout struct {
	Hot       string // ZSET: member "rule key", score requests per second now
	Info      string // HASH: the same member → JSON
	Version   string // STRING: "run id:n"
	Owners    string // HASH: owner → epoch, owner:holder → the process that has it, owner:until → the end of its lease
	Beat      string // STRING with a TTL: a publisher lives, and the fleet in short
	Events    string // STREAM: every change in full
	Schema    string // STRING: the version of this layout
	Suspects  string // ZSET with a TTL: as Hot; the union of what each owner tells under its name: "…:suspects:{owner}"
	Instances string // ZSET with a TTL: instance → when it was last heard of, unix milliseconds
	Changed   string // channel: every change, or its version alone; and changes of the suspects
}

// NewLayout gives the names of a namespace, which must be valid.
func NewLayout(namespace string) Layout {
	prefix := "hotparam:{" + namespace + "}:"
	return Layout{
		Hot:       prefix + "hot",
		Info:      prefix + "info",
		Version:   prefix + "version",
		Owners:    prefix + "owners",
		Beat:      prefix + "beat",
		Events:    prefix + "events",
		Schema:    prefix + "schema",
		Suspects:  prefix + "suspects",
		Instances: prefix + "instances",
		Changed:   prefix + "changed",
	}
}

// keys are the names of what an owner's scripts touch, in the order in which they
// expect them.
func (l Layout) keys(owner string) []string {
	return []string{l.Hot, l.Info, l.Version, l.Owners, l.Beat, l.Events, l.Schema, l.Suspects, l.Suspects + ":" + owner, l.Instances}
}
