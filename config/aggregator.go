package config

import (
	"cmp"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Aggregator holds the daemon's settings, section "aggregator:" of the file.
// What the file does not say is zero; [Aggregator.WithDefaults] fills it in.
type Aggregator struct {
	// Source is how counts travel: [SourceStatsD], [SourceKafka], [SourceGraphite] or
	// [SourceNone].
	Source string
	// Name identifies this aggregator among others that share the keys. Empty means
	// that it is alone, or that Kafka assigns the keys.
	Name string
	// Lease makes one of several aggregators that all get everything publish.
	Lease bool
	// Listen are the addresses for StatsD lines, as [wire.ParseAddress] reads
	// them.
	Listen []string
	// Readers is how many sockets share each UDP address, and its packets.
	Readers int
	// Canonical asserts that the keys of other programs are canonical.
	Canonical bool
	// Redis holds the hot set.
	Redis Redis
	// HoldWhenAway is how long instances keep limiting the keys that were hot when the
	// aggregator or Redis went away. Zero means some seconds.
	HoldWhenAway time.Duration
	// SnapshotFile is where the StatsD aggregator keeps what it needs after a restart. Empty
	// means in Redis.
	SnapshotFile string
	// HTTP is the address for health, metrics and the page.
	HTTP string
	// Page is whether there is a page: [PageOn] or [PageOff].
	Page string
	// PageTokenFile or PageTokenEnv is where the token that opens the page is, see
	// [Aggregator.PageToken].
	PageTokenFile, PageTokenEnv string
	// PageHosts are names of the server, besides loopback's and HTTP's.
	PageHosts []string
	// Pprof serves profiles of the process at /debug/pprof/, to those who may read the page.
	Pprof bool
	// Memory is how many bytes the windows may hold.
	Memory int64
	// Trust is whose counts are believed: [TrustAll], [TrustListed] or [TrustSigned].
	Trust string
	// Senders are the addresses of [TrustListed].
	Senders []netip.Prefix
	// KeyFile or KeyEnv is where the keys are, see [Aggregator.Keys].
	KeyFile, KeyEnv string
	// Caps are what one sender can do.
	Caps Caps
}

// How counts travel from instances to aggregators.
const (
	SourceStatsD   = "statsd"   // straight
	SourceKafka    = "kafka"    // by a topic
	SourceGraphite = "graphite" // by a StatsD that writes to Graphite, which is asked
	SourceNone     = "none"     // by no way: instances only limit
)

// Sources are the words for the ways by which counts reach an aggregator.
var Sources = []string{SourceStatsD, SourceKafka, SourceGraphite}

// sources are the words for [Aggregator.Source].
var sources = []string{SourceStatsD, SourceKafka, SourceGraphite, SourceNone}

// defaultListen is where a StatsD listens, ours as any.
const defaultListen = "127.0.0.1:8125"

// WithDefaults returns the settings with the default for each that is zero.
func (a Aggregator) WithDefaults() Aggregator {
	a.Source = cmp.Or(a.Source, SourceStatsD)
	if len(a.Listen) == 0 {
		a.Listen = []string{defaultListen}
	}
	a.Readers = cmp.Or(a.Readers, 1)
	a.Redis.URL = cmp.Or(a.Redis.URL, "redis://127.0.0.1:6379/0")
	a.HTTP = cmp.Or(a.HTTP, "127.0.0.1:9125")
	a.Page = cmp.Or(a.Page, PageOn)
	a.Memory = cmp.Or(a.Memory, 64<<20)
	a.Trust = cmp.Or(a.Trust, TrustAll)
	a.Caps = a.Caps.WithDefaults()
	return a
}

var aggregatorSection = section{
	name: "aggregator", prefix: "aggregator.",
	fields:  []string{"source", "name", "lease", "listen", "readers", "canonical", "redis", "hold_when_away", "snapshot_file", "http", "page", "page_token_file", "page_token_env", "page_hosts", "pprof", "memory", "trust", "senders", "key_file", "key_env", "caps"},
	example: "for example aggregator: {listen: 127.0.0.1:8125, redis: redis://127.0.0.1:6379/0}",
}

func (d *decoder) aggregator(n *node) Aggregator {
	v := d.section(n, aggregatorSection)
	var a Aggregator
	a.Source, _ = d.choice(v.get("source"), "aggregator.source", sources...)
	a.Name = d.aggregatorName(v.get("name"))
	a.Lease = d.flag(v.get("lease"), "aggregator.lease")
	a.Listen = d.listen(v.get("listen"))
	a.Readers = d.readers(v.get("readers"))
	a.Canonical = d.flag(v.get("canonical"), "aggregator.canonical")
	a.Redis = d.redis(v.get("redis"))
	a.HoldWhenAway = d.duration(v.get("hold_when_away"), "aggregator.hold_when_away", "for example 10m", 0)
	if a.HoldWhenAway > maxHold {
		d.reject(v.get("hold_when_away"), "for example 10m", "aggregator.hold_when_away %s: want at most %v", quote(v.get("hold_when_away").text), maxHold)
	}
	a.SnapshotFile = d.word(v.get("snapshot_file"), "aggregator.snapshot_file")
	a.HTTP = d.address(v.get("http"), "aggregator.http", "127.0.0.1:9125")
	a.Memory = d.size(v.get("memory"), "aggregator.memory", "64MB is enough for some 200,000 keys", minMemory)
	d.page(v, &a)
	pprof, _ := d.choice(v.get("pprof"), "aggregator.pprof", "on", "off")
	a.Pprof = pprof == "on"
	d.trust(v, &a)
	return a
}

func (d *decoder) aggregatorName(n *node) string {
	s, ok := d.scalar(n, "aggregator.name")
	if ok && !ValidName(s) {
		d.reject(n, "for example agg-1", "aggregator.name %s: want 1 to 64 of A-Z a-z 0-9 . _ -", quote(s))
	}
	return s
}

// listen reads one address or a list of them.
func (d *decoder) listen(n *node) []string {
	const what = "aggregator.listen"
	if n != nil && n.kind == scalarKind {
		return []string{d.statsdAddress(n, what)}
	}
	return d.addresses(n, what, "127.0.0.1:8125, unix:///run/hotparam/statsd.sock", d.statsdAddress)
}

// listeners returns where each address of aggregator.listen stands.
func (d *decoder) listeners(n *node) map[string]Problem {
	if n == nil {
		return nil
	}
	items := n.items
	if n.kind == scalarKind {
		items = []*node{n}
	}
	places := make(map[string]Problem)
	for _, item := range items {
		places[d.statsdAddress(item, "")] = d.problem(item.at, "", "")
	}
	return places
}

// maxReaders is the highest number of sockets that share a UDP address.
const maxReaders = 64

func (d *decoder) readers(n *node) int {
	s, ok := d.scalar(n, "aggregator.readers")
	if !ok {
		return 0
	}
	readers, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || readers < 1 || readers > maxReaders {
		d.reject(n, "one takes some million lines a second; more than there are processors gain nothing",
			"aggregator.readers %s: want 1 to %d", quote(s), maxReaders)
	}
	return readers
}

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// ValidName reports whether s can be an aggregator's name: 1 to 64 of A-Z a-z
// 0-9 . _ -.
func ValidName(s string) bool { return validName.MatchString(s) }

// address reads host:port; the host may be empty for all addresses.
func (d *decoder) address(n *node, what, example string) string {
	s, ok := d.scalar(n, what)
	if !ok {
		return ""
	}
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		d.reject(n, "for example "+example, "%s %s: want host:port", what, quote(s))
	}
	return s
}

// maxHold is the longest [Aggregator.HoldWhenAway].
const maxHold = time.Hour

// minMemory is the least that windows can work in.
const minMemory = 1 << 20
