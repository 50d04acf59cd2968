package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// The words for [Aggregator.Trust], which selects the counts that are accepted.
const (
	TrustAll    = "all"    // from every sender that can reach the aggregator
	TrustListed = "listed" // from listed addresses
	TrustSigned = "signed" // signed by a key
)

// Caps bound one sender. Zero means the default, and [NoCap] no bound.
type Caps struct {
	Counts   int64 // counts in a second
	Keys     int   // different keys in a second
	Names    int   // names of instances in total
	NewNames int   // new names of one address in a minute
}

// NoCap is the value of the word none.
const NoCap = -1

func (c *Caps) settings() settings {
	const hint = "without it the default holds, which is far above what hotparam's senders send; none means no bound"
	return settings{
		{"counts", number(&c.Counts, hint, "none", 1<<50), "100000000", "Its count per second"},
		{"keys", number(&c.Keys, hint, "none", 1<<24), "250000", "Its keys that differ, in a second"},
		{"names", number(&c.Names, hint, "none", 100_000), "10000", "Names of instances, in all"},
		{"new_names", number(&c.NewNames, hint, "none", 100_000), "1000", "New ones of these, of one address in a minute"},
	}
}

// check checks the settings that select the senders whose counts are accepted.
func (a *Aggregator) check(d *decoder, _ *fileNode, v values) {
	node := v.get("trust")
	switch {
	case a.Trust == TrustListed && !v.has("senders"):
		d.report(node.pos, "for example senders: [10.0.0.0/8, 192.0.2.7]", "aggregator.trust: listed without senders believes no sender")
	case a.Trust == TrustSigned && !v.has("key_file") && !v.has("key_env"):
		d.report(node.pos, "make one by openssl rand -hex 32, and name its file in key_file, or a variable that holds it in key_env", "aggregator.trust: signed needs a key")
	}
	if n := v.get("senders"); n != nil && a.Trust != TrustListed {
		d.reject(n, "add trust: listed, or remove it", "aggregator.senders has no effect: only trust: listed checks addresses")
	}
}

// Keys reads the keys that sign and verify: the first line signs, and every line verifies. It
// returns none without key_file and key_env.
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

// SigningKey reads the key that an instance signs with. It returns nil if the file names none;
// the counts are not signed then.
func (a Aggregator) SigningKey() ([]byte, error) {
	keys, err := a.Keys()
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return keys[0], nil
}

// trustConflicts returns the settings of trust that contradict how counts travel.
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
		add("trust", "with source: graphite there are no packets, and the data in Graphite is not signed", "remove it, and protect the StatsD and Graphite")
	case a.Source == SourceKafka && a.Trust == TrustListed:
		add("trust", "with source: kafka a record does not have its sender's address", "use trust: signed, and ACLs of the brokers")
	case a.Trust == TrustListed && !anyListener(a.Listen, func(network string) bool { return !strings.HasPrefix(network, "unix") }):
		add("trust", "listed checks addresses, but listen has only Unix sockets", "remove it: the rights of its directory decide who may write to a socket")
	case signs != "" && a.Source == SourceStatsD && f.StatsD.Meta != nil && !*f.StatsD.Meta:
		add(field, "a signature is in the meta line, and statsd.meta is false", "remove meta: false, or the key")
	}
	return found
}

// openListeners returns a warning for each address where other machines can send counts
// without authentication.
func (f *File) openListeners() (all Problems) {
	a := f.Aggregator.WithDefaults()
	if a.Source != SourceStatsD || a.Trust != TrustAll {
		return nil
	}
	for _, s := range a.Listen {
		if address, err := wire.ParseAddress(s); err == nil && isOpen(address) {
			w := f.listeners[s] // has no place if a flag or a variable set it
			w.Severity = SeverityWarning
			w.Message = fmt.Sprintf("aggregator.listen %s: anyone who can send there can get any key limited, and hide hot keys", s)
			w.Hint = "set aggregator.trust to signed or listed; docs/SECURITY.md explains both"
			all = append(all, w)
		}
	}
	return all
}

// isOpen reports whether other machines can send to an address.
func isOpen(a wire.Address) bool { return !strings.HasPrefix(a.Network, "unix") && !isLocal(a.Addr) }
