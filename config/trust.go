package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// Whose counts are believed, the words for [Aggregator.Trust].
const (
	TrustAll    = "all"    // of whoever can reach the aggregator
	TrustListed = "listed" // that come from listed addresses
	TrustSigned = "signed" // that are signed by a key
)

// Caps are what one sender can do. Zero is the default, and [NoCap] no bound.
type Caps struct {
	Counts   int64 // in a second
	Keys     int   // that differ, in a second
	Names    int   // of instances, in all
	NewNames int   // of these, of one address in a minute
}

// NoCap is the word none.
const NoCap = -1

var capsSection = section{
	name: "aggregator.caps", prefix: "aggregator.caps.",
	fields:  []string{"counts", "keys", "names", "new_names"},
	example: "for example caps: {counts: 1000000, names: 500}",
}

// WithDefaults returns the caps with the default for each that is zero.
func (c Caps) WithDefaults() Caps {
	return Caps{
		Counts: cmp.Or(c.Counts, 100_000_000), Keys: cmp.Or(c.Keys, 250_000),
		Names: cmp.Or(c.Names, 10_000), NewNames: cmp.Or(c.NewNames, 1_000),
	}
}

func (d *decoder) caps(n *node) Caps {
	v := d.section(n, capsSection)
	read := func(name string, most int64) int64 {
		what := capsSection.prefix + name
		n := v.get(name)
		s, ok := d.scalar(n, what)
		if !ok {
			return 0
		}
		if s == "none" {
			return NoCap
		}
		number, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
		if err != nil || number < 1 || number > most {
			d.reject(n, "without it the default holds, which no sender of ours comes near; none is no bound", "%s %s: want 1 to %d, or none", what, quote(s), most)
			return 0
		}
		return number
	}
	return Caps{
		Counts: read("counts", 1<<50), Keys: int(read("keys", 1<<24)),
		Names: int(read("names", 100_000)), NewNames: int(read("new_names", 100_000)),
	}
}

// trust reads whose counts are believed.
func (d *decoder) trust(v values, a *Aggregator) {
	a.Trust, _ = d.choice(v.get("trust"), "aggregator.trust", TrustAll, TrustListed, TrustSigned)
	a.Senders = d.prefixes(v.get("senders"), "aggregator.senders")
	a.KeyFile, a.KeyEnv = d.password(v, aggregatorSection.prefix, "key")
	a.Caps = d.caps(v.get("caps"))
	at := v.get("trust")
	switch {
	case a.Trust == TrustListed && !v.has("senders"):
		d.report(at.at, "for example senders: [10.0.0.0/8, 192.0.2.7]", "aggregator.trust: listed without senders believes no sender")
	case a.Trust == TrustSigned && !v.has("key_file") && !v.has("key_env"):
		d.report(at.at, "make one by openssl rand -hex 32, and name its file in key_file, or a variable that holds it in key_env", "aggregator.trust: signed without a key")
	}
	if n := v.get("senders"); n != nil && a.Trust != TrustListed {
		d.reject(n, "add trust: listed, or remove it", "aggregator.senders has no effect: only trust: listed checks addresses")
	}
}

// maxPrefixes bounds the list: each packet is held against all of it.
const maxPrefixes = 256

// prefixes reads a list of networks, and of addresses alone. Items that are one of words
// are left out.
func (d *decoder) prefixes(n *node, what string, words ...string) (all []netip.Prefix) {
	const example = "for example [10.0.0.0/8, 192.0.2.7, 2001:db8::/32]"
	items := d.list(n, what)
	if n != nil && n.kind == listKind && (len(items) == 0 || len(items) > maxPrefixes) {
		d.reject(n, example, "%s: want 1 to %d networks, found %d", what, maxPrefixes, len(items))
	}
	for _, item := range items {
		s, ok := d.scalar(item, what)
		if !ok || slices.Contains(words, s) {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if a, bad := netip.ParseAddr(s); bad == nil && a.Zone() == "" {
			a = a.Unmap()
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil:
			d.reject(item, example, "%s %s: want a network in CIDR notation, or an address", what, quote(s))
		case p.Addr().Is4In6():
			d.reject(item, "write it as IPv4: addresses of IPv4 are compared as such, wherever they come in", "%s %s: is IPv4 written as IPv6", what, quote(s))
		case p != p.Masked():
			d.reject(item, fmt.Sprintf("did you mean %v?", p.Masked()), "%s %s: has bits behind its prefix", what, quote(s))
		default:
			all = append(all, p)
		}
	}
	return all
}

// Keys reads the keys that sign and verify: the first line signs, and each of them
// verifies. Without key_file and key_env there are none.
func (a Aggregator) Keys() (keys [][]byte, err error) {
	where := cmp.Or(a.KeyFile, a.KeyEnv)
	text, err := base.ReadSecret(a.KeyFile, a.KeyEnv)
	if err != nil {
		return nil, fmt.Errorf("aggregator.key: %w", err)
	}
	for line := range strings.Lines(text) {
		key := strings.TrimRight(line, "\r\n")
		if len(key) < wire.MinKey {
			return nil, fmt.Errorf("aggregator.key: line %d of %s has %d bytes, want %d at least; make a key by openssl rand -hex 32", len(keys)+1, where, len(key), wire.MinKey)
		}
		keys = append(keys, []byte(key))
	}
	return keys, nil
}

// SigningKey reads the key that an instance signs by; nil if the file names none, as what
// is not asked for need not be signed.
func (a Aggregator) SigningKey() ([]byte, error) {
	keys, err := a.Keys()
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return keys[0], nil
}

// trustConflicts are settings of trust that contradict how counts travel.
func (f *File) trustConflicts() (found []conflict) {
	a := f.Aggregator.WithDefaults()
	signs := a.KeyFile + a.KeyEnv
	field := "key_env"
	if a.KeyFile != "" {
		field = "key_file"
	}
	add := func(field, message, hint string) {
		found = append(found, conflict{"aggregator", field, message, hint})
	}
	switch {
	case a.Source == SourceGraphite && a.Trust != TrustAll:
		add("trust", "with source: graphite no packets come, and the data in Graphite is not signed", "remove it, and protect the StatsD and Graphite")
	case a.Source == SourceKafka && a.Trust == TrustListed:
		add("trust", "with source: kafka a record does not have its sender's address", "trust: signed, and ACLs of the brokers")
	case a.Trust == TrustListed && !anyAddress(a.Listen):
		add("trust", "listed is of addresses, and listen has Unix sockets alone", "remove it: who may write to a socket is a matter of its directory's rights")
	case signs != "" && a.Source == SourceStatsD && f.StatsD.Meta != nil && !*f.StatsD.Meta:
		add(field, "a signature is in the meta line, and statsd.meta is false", "remove meta: false, or the key")
	}
	return found
}

// anyAddress reports whether one of them is no Unix socket.
func anyAddress(listen []string) bool {
	for _, s := range listen {
		if address, err := wire.ParseAddress(s); err != nil || !strings.HasPrefix(address.Network, "unix") {
			return true
		}
	}
	return false
}

// openListeners returns a warning for each address where others than this machine can
// count, without having to prove who they are.
func (f *File) openListeners() (all Problems) {
	a := f.Aggregator.WithDefaults()
	if a.Source != SourceStatsD || a.Trust != TrustAll {
		return nil
	}
	for _, s := range a.Listen {
		if address, err := wire.ParseAddress(s); err == nil && isOpen(address) {
			w := f.listeners[s] // without a place if a flag or a variable names it
			w.Severity = SeverityWarning
			w.Message = fmt.Sprintf("aggregator.listen %s: whoever can send there can have any key limited, and hide which are hot", s)
			w.Hint = "set aggregator.trust to signed or listed; docs/SECURITY.md says which"
			all = append(all, w)
		}
	}
	return all
}

// isOpen reports whether others than this machine can send to an address.
func isOpen(a wire.Address) bool {
	if strings.HasPrefix(a.Network, "unix") {
		return false
	}
	host := a.Addr[:max(0, strings.LastIndexByte(a.Addr, ':'))]
	if host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err != nil || !ip.Unmap().IsLoopback()
}
