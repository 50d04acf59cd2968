package decode

import (
	"time"

	"github.com/hotparam/hotparam/wire"
)

// readHeldBack reads a held-back line. It is false if the line is none.
func (d *Decoder) readHeldBack(line []byte, when time.Time) bool {
	if !wire.IsHeldBack(line) {
		return false
	}
	l, err := wire.ParseHeldBack(line)
	head, ok := d.headOf(l.Prefix, err)
	if !ok {
		return true
	}
	start := len(d.text) // before are texts of the packet's counts
	text, err := d.encoding.AppendDecoded(d.text, l.Group)
	if err != nil {
		d.stats.BadKey.Add(1)
		return true
	}
	d.text = text
	d.stats.HeldBack.Add(1)
	d.heldInGroups += l.N
	if d.groups { // else its sender has other rules, and its counts come later
		d.heldBack = append(d.heldBack, HeldBack{Rule: head.rule, Group: text[start:], N: l.N, When: when})
	}
	return true
}

// inGroup reports whether the groups of a packet's counts have them already: those that begin
// before their own flush were held back. What was reported before the sender's first packet
// is unknown.
func (s *senders) inGroup(from *sender, m *wire.Meta) InGroup {
	switch {
	case m.Groups != s.groups || !m.Sums.Told || m.Sums.Age <= 0:
		return NotInGroup
	case m.Start <= from.accounts.since:
		return MaybeInGroup
	}
	return SurelyInGroup
}
