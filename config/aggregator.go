package config

import (
	"cmp"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Aggregator holds the daemon's settings, section "aggregator:" of the file.
// What the file does not say is zero; [Aggregator.WithDefaults] fills it in.
type Aggregator struct {
	// Listen is the UDP address for StatsD lines.
	Listen string
	// Redis is the URL of the Redis that holds the hot set: redis://,
	// rediss:// or unix://.
	Redis string
	// HTTP is the address for health and metrics.
	HTTP string
	// Memory is how many bytes the windows may hold.
	Memory int64
}

// defaultAggregator is what an Aggregator stands for that says nothing.
var defaultAggregator = Aggregator{
	Listen: "127.0.0.1:8125",
	Redis:  "redis://127.0.0.1:6379/0",
	HTTP:   "127.0.0.1:9125",
	Memory: 64 << 20,
}

// WithDefaults gives the settings with the default for each that is zero.
func (a Aggregator) WithDefaults() Aggregator {
	return Aggregator{
		Listen: cmp.Or(a.Listen, defaultAggregator.Listen),
		Redis:  cmp.Or(a.Redis, defaultAggregator.Redis),
		HTTP:   cmp.Or(a.HTTP, defaultAggregator.HTTP),
		Memory: cmp.Or(a.Memory, defaultAggregator.Memory),
	}
}

var aggregatorSection = section{
	name: "aggregator", prefix: "aggregator.",
	fields:  []string{"listen", "redis", "http", "memory"},
	example: "for example aggregator: {listen: 127.0.0.1:8125, redis: redis://127.0.0.1:6379/0}",
}

func (d *decoder) aggregator(n *node) Aggregator {
	v := d.section(n, aggregatorSection)
	a := Aggregator{
		Listen: d.address(v.get("listen"), "aggregator.listen", "127.0.0.1:8125"),
		HTTP:   d.address(v.get("http"), "aggregator.http", "127.0.0.1:9125"),
	}
	if s, ok := d.scalar(v.get("redis"), "aggregator.redis"); ok {
		if !validRedis(s) {
			// The URL is not shown: it may hold a password in a form that is
			// not known to be one.
			d.report(v.get("redis").at, "for example redis://user:password@host:6379/0", "aggregator.redis: want a URL that begins with redis://, rediss:// or unix://")
		}
		a.Redis = s
	}
	if s, ok := d.scalar(v.get("memory"), "aggregator.memory"); ok {
		if a.Memory, ok = ParseBytes(s); !ok || a.Memory < minMemory {
			d.report(v.get("memory").at, "64MB is enough for some 200,000 keys", "aggregator.memory %s: want a size of at least 1MiB, for example 64MB or 256MiB", quote(s))
		}
	}
	return a
}

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
		d.report(n.at, "for example "+example, "%s %s: want host:port", what, quote(s))
	}
	return s
}

func validRedis(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "redis", "rediss":
		db := strings.Trim(u.Path, "/")
		_, err := strconv.ParseUint(db, 10, 16)
		return u.Host != "" && (db == "" || err == nil)
	case "unix":
		return u.Path != ""
	}
	return false
}

// minMemory is the least that windows can work in.
const minMemory = 1 << 20
