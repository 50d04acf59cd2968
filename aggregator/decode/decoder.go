package decode

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// Decoder turns packets of StatsD lines into counts. A malformed line is
// counted and passed over. One goroutine uses a Decoder; Stats is safe for all.
type Decoder struct {
	// Canonical makes the decoder take all keys as canonical, as those of instances are. It
	// is set before the first packet.
	Canonical bool

	encoding     wire.Encoding
	rules        map[string]lineHead // by prefix
	head         lineHead            // of the last line
	senders      *senders            // shared by the decoders of a listener's readers
	counts       []Count             // of the packet at hand
	timed        bool                // some of them have a time of their own
	groups       bool                // the packet at hand tells what is held back of groups,
	heldBack     []HeldBack          // which is this,
	heldInGroups int64               // or so much of all of them
	byRule       []uint64            // the counts of the packet at hand, as ruleSums have them
	entries      []entry             // those with an account
	text         []byte              // of those whose text does not stand in the packet
	parts        fractions
	trust        *trust            // nil: all are believed
	mac          *wire.MAC         // nil: packets need not be signed
	peer         func() netip.Addr // where the packet at hand came from; nil: that is not known
	capped       bool              // what a sender counts is bounded
	now          time.Time         // when the packet at hand came
	tallies      plainTallies
	bytes        []bool // by rule: it counts bytes,
	inBytes      bool   // as some do
	stats        decoderStats
}

// lineHead is what the lines of a rule begin with.
type lineHead struct {
	bytes     string
	rule      int
	canonical *hotparam.Canonicalizer
}

// NewDecoder returns a decoder for the rules that have a threshold.
func NewDecoder(rules *hotparam.Rules, e wire.Encoding) *Decoder {
	d := &Decoder{encoding: e, rules: make(map[string]lineHead)}
	d.senders = newSenders(rules)
	d.byRule = make([]uint64, len(d.senders.ruled.sums))
	d.bytes, d.inBytes = byteRules(rules)
	for i := range rules.Rules {
		if rule := &rules.Rules[i]; len(rule.Hot) > 0 {
			prefix := rule.CountPrefix(rules.Namespace)
			d.rules[prefix] = lineHead{string(wire.AppendKey([]byte(prefix), e, nil)), i, hotparam.NewCanonicalizer(rule)}
		}
	}
	return d
}

// cutLine cuts the first line off a packet.
func cutLine(packet []byte) (line, rest []byte) {
	line = packet
	if end := bytes.IndexByte(packet, '\n'); end >= 0 {
		line, rest = packet[:end], packet[end+1:]
	}
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line, rest
}

// lines decodes lines of counts that have the instance in common, and the time too
// unless a line tells an earlier one. m and from are what their packet said of itself, and
// its sender; nil: that is not known. ours: an instance has made the keys.
func (d *Decoder) lines(packet []byte, common Count, m *wire.Meta, from *sender, ours bool, h Handler) {
	d.counts, d.text, d.timed, d.entries = d.counts[:0], d.text[:0], false, d.entries[:0]
	accounts := m != nil && from != nil && m.Sums.Told
	clear(d.byRule)
	d.groups, d.heldInGroups, d.heldBack = accounts && m.Groups == d.senders.groups, 0, d.heldBack[:0]
	believe := ours || d.Canonical
	var line []byte
	var lines, counts, sum int64
	for len(packet) > 0 {
		if line, packet = cutLine(packet); len(line) == 0 {
			continue
		}
		lines++
		n := len(d.counts)
		if n == cap(d.counts) {
			d.counts = append(d.counts, common)[:n]
		}
		c := &d.counts[:n+1][n] // written where it is to stay
		c.When, c.Instance, c.InGroup = common.When, common.Instance, common.InGroup
		var account wire.Account
		if end := len(line) - len("|c"); end > 0 && line[end] != '|' { // mostly it ends so
			line, account, _ = wire.CutAccount(line)
		}
		if d.line(line, c, believe, h) {
			counts++
			sum += c.N
			at := -1
			if c.N > 0 {
				d.counts, at = d.counts[:n+1], n
			}
			booked := 0
			if account.Number != 0 && accounts {
				d.entries = append(d.entries, entry{*c, account, at})
				booked = 1
			}
			if place := d.senders.ruled.place[c.Rule]; place >= 0 {
				d.byRule[2*place+booked] += uint64(c.N)
			}
		}
	}
	d.stats.Lines.Add(lines)
	if d.capped && d.isOver(m, from, common.When, sum, h) {
		return
	}
	for i := range d.heldBack {
		h.HeldBack(d.heldBack[i])
	}
	if accounts {
		d.settle(m, from, common.When, sum, h)
	}
	d.stats.Counts.Add(counts)
	d.stats.Sum.Add(sum)
	d.hand(h)
}

// settle accounts for a packet: what was missing before is made up for, and what was
// made up for before is not counted again.
func (d *Decoder) settle(m *wire.Meta, from *sender, when time.Time, sum int64, h Handler) {
	of := d.packetSums(sum)
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	if from.incarnation != m.Incarnation { // another reader has heard of the next life
		return
	}
	healed, retold := from.accounts.settle(m, d.entries, d.counts, &d.senders.accountsLeft, h)
	d.stats.Healed.Add(healed)
	if d.stats.Retold.Add(retold); retold > 0 {
		d.counts = slices.DeleteFunc(d.counts, func(c Count) bool { return c.N == 0 })
	}
	from.accounts.finish(m, when, of, &d.senders.ruled, h)
	if from.doubt > 0 && sum > 0 {
		h.Hidden(when.Add(from.doubt), min(sum, wire.MaxCount))
	}
}

// packetSums are those of the packet at hand, whose counts add up to sum.
func (d *Decoder) packetSums(sum int64) packetSums {
	booked := int64(0)
	for i := range d.entries {
		booked += d.entries[i].N
	}
	return packetSums{uint64(booked), uint64(sum - booked), uint64(d.heldInGroups), d.byRule}
}

// hand gives the counts to the handler.
func (d *Decoder) hand(h Handler) {
	p, ok := h.(PacketHandler)
	if !ok {
		for i := range d.counts {
			h.Count(d.counts[i])
		}
		return
	}
	rest := d.counts
	if d.timed {
		for i := 1; i < len(rest); i++ {
			if !rest[i].When.Equal(rest[0].When) {
				p.Counts(rest[:i])
				rest, i = rest[i:], 0
			}
		}
	}
	p.Counts(rest)
}

// line reads a line into c, whose text is valid until the next packet. False: it is
// no count. believe: the key is canonical.
func (d *Decoder) line(line []byte, c *Count, believe bool, h Handler) bool {
	var part float64
	c.Estimated = false
	key, n, ok := wire.CutCount(line, d.head.bytes)
	if !ok {
		var l wire.Line
		if l, ok = d.parse(line, c.When, h); !ok {
			return false
		}
		key, n, part = l.Key, l.N, l.Frac
		c.Estimated, c.Seen = l.Sampled, l.Seen
		if when := time.Unix(l.When, 0); l.When > 0 && when.Before(c.When) {
			c.When, d.timed = when, true
		}
	}
	c.Rule, c.N, c.Text = d.head.rule, n, key
	if d.encoding.Escapes(key) {
		start := len(d.text)
		var err error
		if d.text, err = d.encoding.AppendDecoded(d.text, key); err != nil {
			d.stats.BadKey.Add(1)
			return false
		}
		c.Text = d.text[start:] // stays what it is when text has to move
	}
	c.Hash = hotparam.Hash(c.Text)
	if !believe {
		d.makeCanonical(c)
	}
	if part > 0 {
		c.N += d.parts.carry(c.Hash, part)
	}
	if c.Estimated {
		c.Seen = min(c.Seen, c.N)
		d.stats.Samples.Add(1)
	}
	return true
}

// parse reads a line of whatever dialect, when is its packet's time, and makes its
// head that of the last line.
func (d *Decoder) parse(line []byte, when time.Time, h Handler) (l wire.Line, ok bool) {
	var err error
	if l, d.text, err = wire.ParseLineIn(d.text, line); err != nil {
		if !errors.Is(err, wire.ErrForeign) || !d.origin(line, when, h) && !d.readHeldBack(line, when) {
			d.reject(err)
		}
		return l, false
	}
	if d.head, ok = d.rules[string(l.Prefix)]; !ok {
		d.stats.NoRule.Add(1)
	}
	return l, ok
}

func (d *Decoder) reject(err error) {
	switch {
	case errors.Is(err, wire.ErrForeign):
		d.stats.Foreign.Add(1)
	case errors.Is(err, wire.ErrNotCounter):
		d.stats.NotCounter.Add(1)
	case errors.Is(err, wire.ErrNegative):
		d.stats.Negative.Add(1)
	case errors.Is(err, wire.ErrEvent):
		d.stats.Events.Add(1)
	default:
		d.stats.Malformed.Add(1)
	}
}
