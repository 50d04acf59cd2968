package config

import "fmt"

// StatsD is where instances send counts by StatsD, section "statsd:" of the
// file. What the file does not say is zero; [StatsD.WithDefaults] fills it in.
type StatsD struct {
	// Addresses are the host:port of the aggregators.
	Addresses []string
	// Spread is what each of several aggregators gets: [SpreadHash], its part
	// of the keys, or [SpreadAll], everything.
	Spread string
}

// How counts are spread over several aggregators.
const (
	SpreadHash = "hash"
	SpreadAll  = "all"
)

// WithDefaults gives the settings with the default for each that is zero: the
// one aggregator of the same file, where it listens.
func (s StatsD) WithDefaults(a Aggregator) StatsD {
	if len(s.Addresses) == 0 {
		s.Addresses = []string{a.WithDefaults().Listen}
	}
	if s.Spread == "" {
		s.Spread = SpreadHash
	}
	return s
}

var statsdSection = section{
	name: "statsd", prefix: "statsd.",
	fields:  []string{"addresses", "spread"},
	example: "for example statsd: {addresses: [10.0.0.5:8125, 10.0.0.6:8125], spread: hash}",
}

// maxAddresses bounds a list of servers.
const maxAddresses = 64

func (d *decoder) statsd(n *node) StatsD {
	v := d.section(n, statsdSection)
	var s StatsD
	s.Addresses = d.servers(v.get("addresses"), "statsd.addresses", "10.0.0.5:8125")
	s.Spread, _ = d.choice(v.get("spread"), "statsd.spread", SpreadHash, SpreadAll)
	return s
}

// servers reads a list of host:port.
func (d *decoder) servers(n *node, what, example string) []string {
	items := d.list(n, what)
	if n != nil && n.kind == listKind && (len(items) == 0 || len(items) > maxAddresses) {
		d.report(n.at, fmt.Sprintf("for example [%s]", example), "%s: want 1 to %d addresses, found %d", what, maxAddresses, len(items))
	}
	var servers []string
	seen := make(map[string]int)
	for _, item := range items {
		s := d.address(item, what, example)
		switch line, twice := seen[s]; {
		case s == "":
			continue
		case s[0] == ':':
			d.report(item.at, "for example "+example, "%s %s: the host is missing", what, quote(s))
		case twice:
			d.report(item.at, "keep one of them", "%s: %s is there twice, first in line %d", what, quote(s), line)
		}
		seen[s] = item.at.line
		servers = append(servers, s)
	}
	return servers
}
