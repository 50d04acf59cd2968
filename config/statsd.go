package config

import (
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/internal/wire"
)

// StatsD holds the addresses that instances send counts to by StatsD, section "statsd:" of the
// file. Settings that the file lacks are zero; [StatsD.WithDefaults] fills them in.
type StatsD struct {
	// Addresses are the addresses of the aggregators, in the form of [wire.ParseAddress];
	// with [SourceGraphite], of the StatsD server that writes to Graphite.
	Addresses []string
	// Spread selects the counts that each of several aggregators gets: with [SpreadHash] a
	// part of the keys, with [SpreadAll] everything.
	Spread string
	// Encoding selects how keys are written, by the names of [wire.ParseEncoding].
	Encoding string
	// Meta reports whether packets begin with a line that only hotparam reads. Nil means true,
	// except with [SourceGraphite].
	Meta *bool
}

// How counts are spread over several aggregators.
const (
	SpreadHash = "hash"
	SpreadAll  = "all"
)

// WithDefaults returns the settings with defaults in place of zeros. The default address is the
// first one that the aggregator of the same file listens on. With [SourceGraphite] it is a StatsD
// server on the same machine, and the other defaults suit such a server.
func (s StatsD) WithDefaults(a Aggregator) StatsD {
	a = a.WithDefaults()
	foreign := a.Source == SourceGraphite
	if len(s.Addresses) == 0 {
		s.Addresses = a.Listen[:1:1]
		if foreign {
			s.Addresses = []string{defaultListen}
		}
	}
	s.settings().setDefaults()
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

// settings returns the fields of the section.
func (s *StatsD) settings() settings {
	return settings{
		{"addresses", as(&s.Addresses, schemaSome(schemaForm(`:[0-9]+$|^unix`)), func(d *decoder, n *fileNode, what string) []string {
			return d.addresses(n, what, "10.0.0.5:8125", d.hosted(d.statsdAddress))
		}), "", "Where counts are sent. Default: where the aggregator listens"},
		{"spread", choice(&s.Spread, SpreadHash, SpreadAll), SpreadHash, "With several addresses: a part of the keys each, or everything to each"},
		{"encoding", choice(&s.Encoding, wire.Plain.String(), wire.Strict.String()), "", "How keys are written. Default: plain"},
		{"meta", as(&s.Meta, schemaFlag, func(d *decoder, n *fileNode, what string) *bool {
			meta := d.flag(n, what)
			return &meta
		}), "", "Lines that state instance, time and losses. Default: true"},
	}
}

// maxAddresses bounds a list of servers.
const maxAddresses = 64

// statsdAddress reads an address for StatsD lines, and returns its shortest form.
func (d *decoder) statsdAddress(n *fileNode, what string) string {
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

// hosted makes read require a host in an address with a port, since counts are sent to it.
func (d *decoder) hosted(read func(*fileNode, string) string) func(*fileNode, string) string {
	return func(n *fileNode, what string) string {
		s := read(n, what)
		if _, port, found := strings.Cut("://"+s, "://:"); found && s != "" {
			d.reject(n, "for example 10.0.0.5:"+port, "%s %s: the host is missing", what, quote(s))
		}
		return s
	}
}

// servers reads a list of host:port.
func (d *decoder) servers(n *fileNode, what, example string) []string {
	return d.addresses(n, what, example, d.hosted(func(n *fileNode, what string) (s string) {
		address(&s, example).read(d, n, what)
		return s
	}))
}

// addresses reads a list of distinct addresses.
func (d *decoder) addresses(n *fileNode, what, example string, read func(n *fileNode, what string) string) []string {
	var found []string
	seen := make(map[string]int)
	for _, item := range d.some(n, what, fmt.Sprintf("for example [%s]", example), maxAddresses, "addresses") {
		s := read(item, what)
		if s == "" {
			continue
		}
		if line, twice := seen[s]; twice {
			d.reject(item, "keep one of them", "%s: %s is there twice, first in line %d", what, quote(s), line)
		}
		seen[s] = item.pos.line
		found = append(found, s)
	}
	return found
}
