package config

import (
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/internal/wire"
)

// StatsD is where instances send counts by StatsD, section "statsd:" of the
// file. What the file does not say is zero; [StatsD.WithDefaults] fills it in.
type StatsD struct {
	// Addresses are those of the aggregators, as [wire.ParseAddress] reads them;
	// with [SourceGraphite] of the StatsD that writes to Graphite.
	Addresses []string
	// Spread is what each of several aggregators gets: [SpreadHash], its part
	// of the keys, or [SpreadAll], everything.
	Spread string
	// Encoding is how keys are written, by the names of [wire.ParseEncoding].
	Encoding string
	// Meta reports whether packets begin with a line that only hotparam reads. Nil means
	// that they do, except with [SourceGraphite].
	Meta *bool
}

// How counts are spread over several aggregators.
const (
	SpreadHash = "hash"
	SpreadAll  = "all"
)

// WithDefaults returns the settings with the default for each that is zero: the
// one aggregator of the same file, at the first address where it listens; with
// [SourceGraphite] a StatsD on the same machine, and what such a one can read.
func (s StatsD) WithDefaults(a Aggregator) StatsD {
	a = a.WithDefaults()
	foreign := a.Source == SourceGraphite
	if len(s.Addresses) == 0 {
		s.Addresses = a.Listen[:1:1]
		if foreign {
			s.Addresses = []string{defaultListen}
		}
	}
	if s.Spread == "" {
		s.Spread = SpreadHash
	}
	if s.Encoding == "" {
		s.Encoding = wire.Plain.String()
		if foreign {
			s.Encoding = wire.Strict.String()
		}
	}
	if s.Meta == nil {
		ours := !foreign
		s.Meta = &ours
	}
	return s
}

var statsdSection = section{
	name: "statsd", prefix: "statsd.",
	fields:  []string{"addresses", "spread", "encoding", "meta"},
	example: "for example statsd: {addresses: [10.0.0.5:8125, 10.0.0.6:8125], spread: hash}",
}

// maxAddresses bounds a list of servers.
const maxAddresses = 64

func (d *decoder) statsd(n *node) StatsD {
	v := d.section(n, statsdSection)
	var s StatsD
	s.Addresses = d.addresses(v.get("addresses"), "statsd.addresses", "10.0.0.5:8125", d.hosted(d.statsdAddress))
	s.Spread, _ = d.choice(v.get("spread"), "statsd.spread", SpreadHash, SpreadAll)
	s.Encoding, _ = d.choice(v.get("encoding"), "statsd.encoding", wire.Plain.String(), wire.Strict.String())
	if n := v.get("meta"); n != nil {
		meta := d.flag(n, "statsd.meta")
		s.Meta = &meta
	}
	return s
}

// statsdAddress reads an address for StatsD lines, and returns its shortest form.
func (d *decoder) statsdAddress(n *node, what string) string {
	s, ok := d.scalar(n, what)
	if !ok {
		return ""
	}
	address, err := wire.ParseAddress(s)
	if err != nil {
		hint := "for example 127.0.0.1:8125"
		if strings.HasPrefix(s, "unix") {
			hint = fmt.Sprintf("for example unix:///run/hotparam/statsd.sock: an absolute path of at most %d bytes", wire.MaxSocketPath)
		}
		d.reject(n, hint, "%s %s: want host:port, tcp://host:port, unix:///path or unixstream:///path", what, quote(s))
		return ""
	}
	return address.String()
}

// hosted reads an address that has a host, if it has a port: one to send to.
func (d *decoder) hosted(read func(*node, string) string) func(*node, string) string {
	return func(n *node, what string) string {
		s := read(n, what)
		if _, rest, found := strings.Cut("://"+s, "://:"); found && s != "" {
			d.reject(n, "for example 10.0.0.5:"+rest, "%s %s: the host is missing", what, quote(s))
		}
		return s
	}
}

// servers reads a list of host:port.
func (d *decoder) servers(n *node, what, example string) []string {
	return d.addresses(n, what, example, d.hosted(func(n *node, what string) string { return d.address(n, what, example) }))
}

// addresses reads a list of addresses that are all different.
func (d *decoder) addresses(n *node, what, example string, read func(n *node, what string) string) []string {
	items := d.list(n, what)
	if n != nil && n.kind == listKind && (len(items) == 0 || len(items) > maxAddresses) {
		d.reject(n, fmt.Sprintf("for example [%s]", example), "%s: want 1 to %d addresses, found %d", what, maxAddresses, len(items))
	}
	var found []string
	seen := make(map[string]int)
	for _, item := range items {
		s := read(item, what)
		if s == "" {
			continue
		}
		if line, twice := seen[s]; twice {
			d.reject(item, "keep one of them", "%s: %s is there twice, first in line %d", what, quote(s), line)
		}
		seen[s] = item.at.line
		found = append(found, s)
	}
	return found
}
