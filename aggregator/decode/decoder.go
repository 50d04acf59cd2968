package decode

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// Count is what one line says: rule number Rule of the rules saw the key with
// this text N times, at When or soon after.
type Count struct {
	Rule int
	Hash uint64 // hotparam.Hash of the text
	Text []byte
	N    int64
	When time.Time
	// Estimated tells that N is an estimate, made of samples: Seen of it were seen.
	Estimated bool
	Seen      int64
	// Instance is the sender's name, if its packet told.
	Instance string
	// InGroup tells whether a [HeldBack] has already added the count to the total of the
	// key's group.
	InGroup InGroup
}

// InGroup is whether a count has been told as held back of its group before.
type InGroup uint8

// Values of InGroup.
const (
	NotInGroup InGroup = iota
	MaybeInGroup
	SurelyInGroup
)

// Handler takes what a decoder finds in packets.
type Handler interface {
	// Count takes one count; its text is valid during the call only.
	Count(Count)
	// Hidden tells that counts of n in sum, of any keys, at when or soon after
	// will never come.
	Hidden(when time.Time, n int64)
	// Held tells what, by now, the collectors together hide of any key of a rule
	// by holding small counts back, over the rule's windows, and how much of that those
	// do who do not tell of groups what they hold back.
	Held(rule int, bound, untold int64)
	// HeldBack takes what is held back of a group.
	HeldBack(HeldBack)
	// Lost tells that packets of when or before went missing.
	Lost(when time.Time)
	// Found tells that packets that went missing came after all: those that are
	// missing still are of newest or before. Zero: none is missing.
	Found(newest time.Time)
	// Missing tells how much is missing where the sender tells what it had sent. A gap
	// is told again when less is missing.
	Missing(Gap)
	// Spare tells of a key that it had no count in a gap but on its account; known: nor
	// there one that was not counted.
	Spare(gap uint64, rule int, hash uint64, known bool)
	// Healed takes counts that were missing, and are of When or later, up to until.
	Healed(c Count, until time.Time)
	// Moved takes counts that were healed as of from, up to, and came after all.
	Moved(c Count, from, to time.Time)
}

// Decoder turns packets of StatsD lines into counts. A malformed line is
// counted and passed over. One goroutine uses a Decoder; Stats is safe for all.
type Decoder struct {
	// Canonical has it take all keys for canonical, as those of instances are. Set it
	// before the first packet.
	Canonical bool

	encoding wire.Encoding
	rules    map[string]lineHead // by prefix
	head     lineHead            // of the last line
	senders  *senders            // shared by the decoders of a listener's readers
	counts   []Count             // of the packet at hand
	timed    bool                // some of them have a time of their own
	groups   bool                // the packet at hand tells what is held back of groups,
	heldBack []HeldBack          // which is this,
	held     int64               // or so much of all of them
	byRule   []uint64            // the counts of the packet at hand, as ruleSums have them
	entries  []entry             // those with an account
	text     []byte              // of those whose text does not stand in the packet
	params   hotparam.Params     // of a key that is made canonical
	known    canonicalKeys
	parts    fractions
	trust    *trust            // nil: all are believed
	mac      *wire.MAC         // nil: packets need not be signed
	peer     func() netip.Addr // where the packet at hand came from; nil: that is not known
	capped   bool              // what a sender counts is bounded
	now      time.Time         // when the packet at hand came
	tallies  plainTallies
	bytes    []bool // by rule: it counts bytes,
	inBytes  bool   // as some do
	stats    decoderStats
}

// PacketHandler is a [Handler] that takes the counts of a packet together: then its Count is
// not called.
type PacketHandler interface {
	Handler
	// Counts takes counts that have the time and the instance in common; they and their
	// texts are valid during the call only.
	Counts([]Count)
}

// lineHead is what the lines of a rule begin with.
type lineHead struct {
	bytes string
	rule  int
	of    *hotparam.Rule
}

type decoderStats struct {
	packets, lines, counts, sum                                atomic.Int64
	malformed, foreign, notCounter, negative, encoding, noRule atomic.Int64
	lostPackets, recovered, duplicates, aged, origins, events  atomic.Int64
	heldBack                                                   atomic.Int64
	healed, retold                                             atomic.Int64
	uncanonical, samples                                       atomic.Int64
	refused                                                    [Refusals]atomic.Int64
	lastRefused                                                atomic.Int64 // in ns since the Unix epoch, by the clock
	whyRefused                                                 atomic.Int64
}

// NewDecoder makes a decoder for the rules that have a threshold.
func NewDecoder(rules *hotparam.Rules, e wire.Encoding) *Decoder {
	d := &Decoder{encoding: e, rules: make(map[string]lineHead)}
	d.senders = newSenders(rules)
	d.byRule = make([]uint64, len(d.senders.ruled.told))
	d.bytes, d.inBytes = byteRules(rules)
	for i := range rules.Rules {
		if rule := &rules.Rules[i]; len(rule.Hot) > 0 {
			prefix := rule.CountPrefix(rules.Namespace)
			d.rules[prefix] = lineHead{string(wire.AppendKey([]byte(prefix), e, nil)), i, rule}
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
	d.groups, d.held, d.heldBack = accounts && m.Groups == d.senders.groups, 0, d.heldBack[:0]
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
	d.stats.lines.Add(lines)
	if d.capped && d.isOver(m, from, common.When, sum, h) {
		return
	}
	for i := range d.heldBack {
		h.HeldBack(d.heldBack[i])
	}
	if accounts {
		d.settle(m, from, common.When, sum, h)
	}
	d.stats.counts.Add(counts)
	d.stats.sum.Add(sum)
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
	d.stats.healed.Add(healed)
	if d.stats.retold.Add(retold); retold > 0 {
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
	return packetSums{uint64(booked), uint64(sum - booked), uint64(d.held), d.byRule}
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
			d.stats.encoding.Add(1)
			return false
		}
		c.Text = d.text[start:] // stays what it is when text has to move
	}
	c.Hash = hotparam.Hash(c.Text)
	if !believe && !d.known.has(c) {
		d.makeCanonical(c)
	}
	if part > 0 {
		c.N += d.parts.carry(c.Hash, part)
	}
	if c.Estimated {
		c.Seen = min(c.Seen, c.N)
		d.stats.samples.Add(1)
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
		d.stats.noRule.Add(1)
	}
	return l, ok
}

func (d *Decoder) reject(err error) {
	switch {
	case errors.Is(err, wire.ErrForeign):
		d.stats.foreign.Add(1)
	case errors.Is(err, wire.ErrNotCounter):
		d.stats.notCounter.Add(1)
	case errors.Is(err, wire.ErrNegative):
		d.stats.negative.Add(1)
	case errors.Is(err, wire.ErrEvent):
		d.stats.events.Add(1)
	default:
		d.stats.malformed.Add(1)
	}
}

// Stats are a decoder's counters since it was made.
type Stats struct {
	Packets, Lines, Counts int64
	// Sum is what the counts add up to.
	Sum int64
	// Lines that were no counts, by reason.
	Malformed, Foreign, NotCounter, Negative, BadKey, NoRule int64
	// Events are DogStatsD's events and service checks, which are no counts either.
	Events int64
	// LostPackets are gaps in the senders' sequences, Recovered are packets
	// that made such a gap and came after all, Duplicates are packets that came
	// twice, Senders are the instances heard of lately.
	LostPackets, Recovered, Duplicates, Senders int64
	// Late are those of the senders whose counts come late.
	Late LateSenders
	// Off are those of the senders whose clocks are off.
	Off OffClocks
	// Origins are lines that tell where counts of a hot key come from, HeldBack those
	// that tell what is held back of a group.
	Origins, HeldBack int64
	// Aged is what instances held back until it was older than any window.
	Aged int64
	// Healed are counts of lost packets that later lines of the same keys made up for,
	// Retold those of them whose packets came after all.
	Healed, Retold int64
	// Uncanonical are counts of other programs whose keys were not canonical, and were
	// counted as what they are in canonical form.
	Uncanonical int64
	// Samples are counts that are estimates.
	Samples int64
	// Refused are packets that were not believed, by reason.
	Refused [Refusals]int64
	// LastRefused is the last of them.
	LastRefused LastRefused
}

// LastRefused is when something was not believed, by the clock, and why; zero: never.
type LastRefused struct {
	When time.Time
	Why  Refusal
}

// Stats tells the counters. It is safe for concurrent use.
func (d *Decoder) Stats() Stats {
	s := &d.stats
	all := Stats{
		Packets: s.packets.Load(), Lines: s.lines.Load(), Counts: s.counts.Load(), Sum: s.sum.Load(),
		Malformed: s.malformed.Load(), Foreign: s.foreign.Load(), NotCounter: s.notCounter.Load(),
		Negative: s.negative.Load(), BadKey: s.encoding.Load(), NoRule: s.noRule.Load(), Events: s.events.Load(),
		LostPackets: s.lostPackets.Load(), Recovered: s.recovered.Load(), Duplicates: s.duplicates.Load(), Senders: d.senders.known.Load(), Aged: s.aged.Load(), Origins: s.origins.Load(), HeldBack: s.heldBack.Load(),
		Healed: s.healed.Load(), Retold: s.retold.Load(),
		Late: d.senders.lateNow(), Off: d.senders.offNow(), Uncanonical: s.uncanonical.Load(), Samples: s.samples.Load(),
	}
	for i := range s.refused {
		all.Refused[i] = s.refused[i].Load()
	}
	if ns := s.lastRefused.Load(); ns > 0 {
		all.LastRefused = LastRefused{time.Unix(0, ns), Refusal(s.whyRefused.Load())}
	}
	return all
}

// Merge adds the counters of another decoder. Senders are the most that any had:
// the same instances send to all.
func (s *Stats) Merge(o *Stats) {
	s.Packets += o.Packets
	s.Lines += o.Lines
	s.Counts += o.Counts
	s.Sum += o.Sum
	s.Malformed += o.Malformed
	s.Foreign += o.Foreign
	s.NotCounter += o.NotCounter
	s.Negative += o.Negative
	s.BadKey += o.BadKey
	s.NoRule += o.NoRule
	s.Events += o.Events
	s.LostPackets += o.LostPackets
	s.Recovered += o.Recovered
	s.Duplicates += o.Duplicates
	s.Senders = max(s.Senders, o.Senders)
	s.Late.merge(o.Late)
	s.Off.merge(o.Off)
	s.Origins += o.Origins
	s.HeldBack += o.HeldBack
	s.Aged += o.Aged
	s.Healed += o.Healed
	s.Retold += o.Retold
	s.Uncanonical += o.Uncanonical
	s.Samples += o.Samples
	for i := range s.Refused {
		s.Refused[i] += o.Refused[i]
	}
	if o.LastRefused.When.After(s.LastRefused.When) {
		s.LastRefused = o.LastRefused
	}
}
