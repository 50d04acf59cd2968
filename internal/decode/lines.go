package decode

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// decodeLines decodes the count lines of one packet and passes their counts to h, unless the
// packet exceeds a cap of its sender. common holds the instance and the default time of the
// counts; a line may name an earlier time. m is the packet's meta line and from its sender,
// both nil if unknown. Keys of a packet with a meta line are canonical, as an instance made
// them.
func (d *Decoder) decodeLines(packet []byte, common Count, m *wire.Meta, from *sender, h Handler) {
	d.counts, d.text, d.timed, d.entries = d.counts[:0], d.text[:0], false, d.entries[:0]
	accounts := m != nil && from != nil && m.Sums.Stated
	d.byRule, d.byBucket = d.byRule[:0], d.byBucket[:0]
	byRule := accounts && d.senders.ruled.size > 0
	d.groups, d.heldInGroups, d.heldBack = accounts && m.Groups == d.senders.groups, 0, d.heldBack[:0]
	believe := m != nil || d.Canonical
	var line []byte
	var lines, counts, sum int64
	for len(packet) > 0 {
		n := len(d.counts)
		if n == cap(d.counts) {
			d.counts = append(d.counts, common)[:n]
		}
		c := &d.counts[:n+1][n] // decoded in place, to save a copy
		c.When, c.Instance, c.InGroup, c.Skew = common.When, common.Instance, common.InGroup, common.Skew
		var account wire.Account
		next := d.cutAlike(packet, c, believe)
		if next > 0 {
			packet = packet[next:]
		} else if line, packet = cutLine(packet); len(line) == 0 {
			continue
		} else if end := len(line) - len("|c"); end > 0 && line[end] != '|' { // most lines end with "|c" and have no account
			line, account, _ = wire.CutAccount(line)
		}
		lines++
		if next > 0 || d.decodeLine(line, c, believe, h) {
			counts++
			sum += c.N
			index := -1
			if c.N > 0 {
				d.counts, index = d.counts[:n+1], n
			}
			booked := 0
			if account.Number != 0 && accounts {
				d.entries = append(d.entries, bookedLine{*c, account, index})
				booked = 1
			} else if accounts && d.jumps[c.Rule] {
				d.byBucket = append(d.byBucket, looseCount{uint32(wire.BucketOf(wire.BucketHash(c.Text), m.Incarnation)), uint32(c.N)})
			}
			if byRule {
				d.byRule.add(2*c.Rule+booked, uint64(c.N))
			}
		}
	}
	d.stats.Lines.Add(lines)
	if d.capped && d.exceedsCap(m, from, common.When, sum, h) {
		return
	}
	for i := range d.heldBack {
		h.AddHeldBack(d.heldBack[i])
	}
	if accounts {
		d.settlePacket(m, from, common.When, sum, h)
	}
	d.stats.Counts.Add(counts)
	d.stats.Sum.Add(sum)
	d.deliverCounts(h)
}

// settlePacket compares a packet with the sender's accounts. It reports counts that were missing
// before as healed, and removes counts from the packet that had been healed already.
func (d *Decoder) settlePacket(m *wire.Meta, from *sender, when time.Time, sum int64, h Handler) {
	sums := d.packetSums(sum)
	d.senders.mu.Lock()
	defer d.senders.mu.Unlock()
	if from.incarnation != m.Incarnation { // another reader has seen the next incarnation
		return
	}
	healed, retold := from.accounts.bookLines(m, d.entries, d.counts, &d.senders.accountsLeft, h)
	d.stats.Healed.Add(healed)
	if d.stats.Retold.Add(retold); retold > 0 {
		d.counts = slices.DeleteFunc(d.counts, func(c Count) bool { return c.N == 0 })
	}
	d.senders.finishPacket(&from.accounts, m, when, &sums, h)
	if from.doubt > 0 && sum > 0 {
		h.AddHiddenCounts(when.Add(from.doubt), min(sum, wire.MaxCount))
	}
}

// packetSums returns the sums of the current packet, whose counts add up to sum.
func (d *Decoder) packetSums(sum int64) packetSums {
	booked := int64(0)
	for i := range d.entries {
		booked += d.entries[i].N
	}
	return packetSums{uint64(booked), uint64(sum - booked), uint64(d.heldInGroups), d.byRule, d.byBucket}
}

// deliverCounts passes the counts to h: one by one, or all of one time together to a
// [PacketHandler].
func (d *Decoder) deliverCounts(h Handler) {
	p, ok := h.(PacketHandler)
	if !ok {
		for i := range d.counts {
			h.Count(d.counts[i])
		}
		return
	}
	remaining := d.counts
	if d.timed {
		for i := 1; i < len(remaining); i++ {
			if !remaining[i].When.Equal(remaining[0].When) {
				p.Counts(remaining[:i])
				remaining, i = remaining[i:], 0
			}
		}
	}
	p.Counts(remaining)
}
