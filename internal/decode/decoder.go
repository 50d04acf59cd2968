package decode

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Decoder turns packets of StatsD lines into counts. It counts and skips malformed lines. A
// Decoder must not be used by several goroutines at a time, except for Stats.
type Decoder struct {
	// Canonical reports whether all keys are canonical, as those of instances are. It must be
	// set before the first packet.
	Canonical bool

	encoding     wire.Encoding
	rules        map[string]lineHead // line heads by prefix
	head         lineHead            // head of the last line
	alike        alike
	maxAlike     int          // longest key in bytes that certainly need not be cut
	senders      *senders     // shared by the decoders of a listener's readers
	counts       []Count      // counts of the current packet
	timed        bool         // whether some of them have a time of their own
	groups       bool         // whether the packet's held-back counts of groups are used
	heldBack     []HeldBack   // held-back counts of the packet, by group
	heldInGroups int64        // sum of its held-back counts, of all groups
	byRule       placeCounts  // counts of the packet by rule
	byBucket     []looseCount // its counts on no account, of rules with a jump
	entries      []bookedLine // its counts with an account
	text         []byte       // key texts that differ from the bytes in the packet
	fractions    fractions
	trust        *trust            // nil believes all senders
	mac          *wire.MAC         // nil if packets need not be signed
	peer         func() netip.Addr // returns the address of the packet's sender; nil if unknown
	capped       bool              // whether the counts of a sender are bounded
	now          time.Time         // arrival time of the current packet
	tallies      plainTallies
	jumps        []bool // by rule, whether it has a jump
	bytes        []bool // by rule, whether it counts bytes
	inBytes      bool   // whether any rule does
	stats        decoderStats
}

// lineHead is the beginning of a rule's lines.
type lineHead struct {
	bytes     string
	rule      int
	canonical *keytext.Canonicalizer
}

// NewDecoder returns a decoder for the rules that have a threshold.
func NewDecoder(ruleset *rules.Rules, e wire.Encoding) *Decoder {
	n := NumberRules(ruleset)
	d := &Decoder{encoding: e, maxAlike: min(rules.MaxText, e.Limit()/3)}
	d.compile(n)
	d.senders = newSenders(n)
	return d
}

// Believe sets the senders whose packets the decoder believes. It is called before the first
// packet. A nil t believes all.
func (d *Decoder) Believe(t *Trust) {
	if t == nil {
		return
	}
	d.trust = &trust{Trust: t}
	d.senders.names = newNameCaps(&t.Caps)
	d.senders.mostClaimed = t.Caps.claims()
	d.applyTrust()
}

// ShareSenders makes the decoder follow the senders of other, so that an instance that dials
// again and reaches another socket does not count as a loss. It is called before the first
// packet.
func (d *Decoder) ShareSenders(other *Decoder) {
	d.senders, d.trust = other.senders, other.trust
	d.applyTrust()
}

func (d *Decoder) applyTrust() {
	if d.trust == nil {
		return
	}
	if d.trust.Mode == TrustSigned {
		d.mac = wire.NewMAC(d.trust.Keys...)
	}
	d.capped = d.trust.Caps.Counts > 0 || d.trust.Caps.Keys > 0
}

// LimitAccounts bounds the memory in bytes for the accounts of keys, of all senders together.
// It is called before the first packet.
func (d *Decoder) LimitAccounts(bytes int64) { d.senders.accountsLeft = int(bytes / accountSize) }

// Stats returns the counters. It is safe for concurrent use.
func (d *Decoder) Stats() Stats {
	s := &d.stats
	all := Stats{Counters: base.LoadCounters[Counters[int64]](&s.Counters)}
	d.senders.addTo(&all)
	if ns := s.lastRefused.Load(); ns > 0 {
		all.LastRefused = LastRefused{time.Unix(0, ns), PacketRefusal(s.whyRefused.Load())}
	}
	return all
}

// Clocks returns the clocks that are off, of instances whose packets arrived lately, sorted by
// name. It is safe for concurrent use.
func (d *Decoder) Clocks(now time.Time) []SenderClock {
	s := d.senders
	s.mu.Lock()
	defer s.mu.Unlock()
	var off []SenderClock
	for _, known := range s.byName {
		if shown := known.clock.shown; shown.Behind != 0 && now.Sub(known.heard) <= liveFor {
			off = append(off, shown)
		}
	}
	slices.SortFunc(off, func(a, b SenderClock) int { return cmp.Compare(a.Name, b.Name) })
	return off
}
