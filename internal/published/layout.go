package published

// Layout holds the names of a namespace's keys in Redis. All names share one hash tag,
// so that one script can access them all in a cluster. See docs/design/redis.md for the
// contents.
type Layout struct {
	Hot       string // ZSET: member "rule key", score requests per second now
	Info      string // HASH: the same member → JSON
	Version   string // STRING: "run id:n"
	Owners    string // HASH: owner → epoch, owner:holder → the process that holds it, owner:until → the end of its lease, owner:judged → the time up to which it has judged the counts
	Beat      string // STRING with a TTL: the heartbeat of the publishers, with a summary of the fleet
	Events    string // STREAM: every change in full
	Schema    string // STRING: the version of this layout
	Suspects  string // ZSET with a TTL: like Hot; the union of each owner's suspects, "…:suspects:{owner}"; and "…:suspects:near:{owner}", STRINGs with a TTL: what the owner sees apart from hot keys
	Instances string // ZSET with a TTL: instance → when it last sent counts, unix milliseconds
	Snapshots string // prefix of STRINGs with a TTL, "…:snapshot:{owner}": the state that the owner's holder needs after a restart
	Changed   string // channel: every change, or only its version; and changes of the suspects

	Members         string // ZSET with a TTL: member → when its last heartbeat came, unix milliseconds
	MembersInfo     string // HASH with a TTL: the same member → JSON
	MembersVersions string // ZSET with a TTL: version of rules → when a member last had it, unix milliseconds

	Control       string // HASH with a TTL: "rule key" → JSON, and "version"; also a channel: each new version
	ControlEvents string // STREAM: every change of the controls

	Invalidation string // STREAM with a TTL: answers to invalidate, by identifiers; also a channel: an entry was added

	Webhook string // HASH: which aggregator posts events, until when, and the last event that it posted
}

// NewLayout returns the layout of a namespace, which must be valid
// ([rules.ValidNamespace]).
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
		Snapshots: prefix + "snapshot:",
		Changed:   prefix + "changed",

		// The key "members" itself is of package redislimiter, which counts its members.
		Members:         prefix + "members:heard",
		MembersInfo:     prefix + "members:info",
		MembersVersions: prefix + "members:versions",

		Control:       prefix + "control",
		ControlEvents: prefix + "control:events",

		Invalidation: prefix + "invalidation",

		Webhook: prefix + "webhook",
	}
}
