package config

import (
	"net/netip"
	"regexp"
	"time"
)

// Aggregator holds the daemon's settings, section "aggregator:" of the file.
// Settings that the file lacks are zero; [Aggregator.WithDefaults] fills them in.
type Aggregator struct {
	// Source is the way that counts travel: [SourceStatsD], [SourceKafka], [SourceGraphite]
	// or [SourceNone].
	Source string
	// Name identifies this aggregator among others that share the keys. Empty means
	// that it is alone, or that Kafka assigns the keys.
	Name string
	// Lease makes only one of several aggregators that receive all counts publish.
	Lease bool
	// Listen are the addresses for StatsD lines, in the form of [wire.ParseAddress].
	Listen []string
	// Readers is the number of sockets that share each UDP address and its packets.
	Readers int
	// Canonical asserts that the keys of other programs are canonical, so that the aggregator
	// counts them unchanged.
	Canonical bool
	// Redis holds the hot set.
	Redis Redis
	// HoldDuringOutage is the time that instances keep limiting the last hot keys while the
	// aggregator or Redis is unavailable. Zero means some seconds.
	HoldDuringOutage time.Duration
	// SnapshotFile is the file in which the StatsD aggregator keeps the state that it needs
	// after a restart. Empty means that the state is in Redis.
	SnapshotFile string
	// HTTP is the address for health, metrics and the page.
	HTTP string
	// Page selects whether there is a page: [PageOn] or [PageOff].
	Page string
	// PageTokenFile or PageTokenEnv names the place of the token that opens the page; see
	// [Aggregator.PageToken].
	PageTokenFile, PageTokenEnv string
	// PageHosts are further names of the server, in addition to loopback's and HTTP's.
	PageHosts []string
	// Pprof serves profiles of the process at /debug/pprof/, to readers of the page.
	Pprof bool
	// Memory is the number of bytes that the windows may hold.
	Memory int64
	// History is what is kept of the past.
	History History
	// Trust selects the senders whose counts are accepted: [TrustAll], [TrustListed] or
	// [TrustSigned].
	Trust string
	// Senders are the networks of [TrustListed].
	Senders []netip.Prefix
	// KeyFile or KeyEnv names the place of the keys; see [Aggregator.Keys].
	KeyFile, KeyEnv string
	// Caps bound each sender.
	Caps Caps
}

// The ways that counts travel from instances to aggregators.
const (
	SourceStatsD   = "statsd"   // directly
	SourceKafka    = "kafka"    // through a topic
	SourceGraphite = "graphite" // through a StatsD server that writes to Graphite, which the aggregator queries
	SourceNone     = "none"     // not at all: instances only limit
)

// Sources are the words for the ways that counts reach an aggregator.
var Sources = []string{SourceStatsD, SourceKafka, SourceGraphite}

// sources are the words for [Aggregator.Source].
var sources = []string{SourceStatsD, SourceKafka, SourceGraphite, SourceNone}

// defaultListen is the usual address of a StatsD server, ours or any other.
const defaultListen = "127.0.0.1:8125"

// settings returns the fields of the section.
func (a *Aggregator) settings() settings {
	return settings{
		{"source", choice(&a.Source, sources...), SourceStatsD, "How counts arrive; none if no rule has hot"},
		{"name", written(&a.Name, validName.String(), "for example agg-1", "1 to 64 of A-Z a-z 0-9 . _ -", ValidName), "", "Name of this aggregator among others"},
		{"lease", flag(&a.Lease), "", "One of several aggregators publishes, and another takes over when it dies"},
		{"listen", as(&a.Listen, oneOrMore(schemaForm(`:[0-9]+$|^unix`)), (*decoder).listen), defaultListen, "Addresses for StatsD lines"},
		{"readers", number(&a.Readers, "one reader takes some million lines a second; more readers than processors gain nothing", "", maxReaders), "1", "Sockets that share a UDP address"},
		{"canonical", flag(&a.Canonical), "", "Whether keys of other programs are canonical and need no check. Default: false"},
		{"redis", a.Redis.value(), "", "Where the hot set is published. Default: " + defaultRedis},
		{"hold_when_away", span(&a.HoldDuringOutage, "10m", 0, maxHold), "", "How long hot keys stay limited while the aggregator or Redis is unavailable, at most 1h. Default: some seconds"},
		{"snapshot_file", word(&a.SnapshotFile), "", "File for what the StatsD aggregator needs after a restart. Default: in Redis"},
		{"http", address(&a.HTTP, "127.0.0.1:9125"), "127.0.0.1:9125", "Address for the page, health and metrics"},
		{"page", choice(&a.Page, PageOn, PageOff), PageOn, "Whether to serve the page of hot keys"},
		{"page_token_file", word(&a.PageTokenFile), "", "File with the token that opens the page"},
		{"page_token_env", variable(&a.PageTokenEnv), "", "Variable with the token that opens the page"},
		{"page_hosts", as(&a.PageHosts, schemaSome(schemaForm(`^[A-Za-z0-9._:-]+$`)), (*decoder).pageHosts), "", "Further names by which browsers reach the page"},
		{"pprof", isWord(&a.Pprof, "on", "on", "off"), "off", "Profiles of the process at /debug/pprof/"},
		{"memory", size(&a.Memory, "64MB is enough for some 200,000 keys", minMemory), "64MiB", "Memory of the windows; when it is full, counts become bounds. The process takes up to twice as much, or 67 MB with 16MiB"},
		{"history", a.History.value(), "", "What was hot, and how much, is kept for days. Default: off"},
		{"trust", choice(&a.Trust, TrustAll, TrustListed, TrustSigned), TrustAll, "Whose counts are believed"},
		{"senders", networks(&a.Senders), "", "Networks of senders, for trust: listed"},
		{"key_file", word(&a.KeyFile), "", "File with the keys that sign counts"},
		{"key_env", variable(&a.KeyEnv), "", "Variable with the keys that sign counts"},
		{"caps", within(&a.Caps, a.Caps.settings(), "for example caps: {counts: 1000000, names: 500}"), "", "Bounds on what one sender can do"},
	}
}

// WithDefaults returns the settings with defaults in place of zeros.
func (a Aggregator) WithDefaults() Aggregator {
	a.settings().setDefaults()
	return a
}

// listen reads one address or a list of them.
func (d *decoder) listen(n *fileNode, what string) []string {
	if n.kind == scalarKind {
		return []string{d.statsdAddress(n, what)}
	}
	return d.addresses(n, what, "127.0.0.1:8125, unix:///run/hotparam/statsd.sock", d.statsdAddress)
}

// listeners returns the place of each address of aggregator.listen in the file.
func (d *decoder) listeners(n *fileNode) map[string]Problem {
	if n == nil {
		return nil
	}
	places := make(map[string]Problem)
	for _, item := range oneOrItems(n) {
		places[d.statsdAddress(item, "")] = d.problem(item.pos, "", "")
	}
	return places
}

// maxReaders is the maximum number of sockets that share a UDP address.
const maxReaders = 64

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// ValidName reports whether s can be an aggregator's name: 1 to 64 of A-Z a-z
// 0-9 . _ -.
func ValidName(s string) bool { return validName.MatchString(s) }

// maxHold is the longest [Aggregator.HoldDuringOutage].
const maxHold = time.Hour

// minMemory is the least memory that windows can work in.
const minMemory = 1 << 20
