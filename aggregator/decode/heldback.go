package decode

import (
	"time"

	"github.com/hotparam/hotparam/wire"
)

// HeldBack says that N counts of the keys of a group, of When or soon after, are held
// back by their sender: when they come they are in the group's total already.
type HeldBack struct {
	Rule  int
	Group []byte // as [keytext.AppendGroup], [keytext.AppendAgain] or [wire.Rest] have it
	N     int64
	When  time.Time
}

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

// inGroup tells of a packet's counts whether their groups have them already: those that
// begin before their own flush were held back. What was told before the sender was heard
// of for the first time is not known.
func (s *senders) inGroup(from *sender, m *wire.Meta) InGroup {
	switch {
	case m.Groups != s.groups || !m.Sums.Told || m.Sums.Age <= 0:
		return NotInGroup
	case m.Start <= from.accounts.since:
		return MaybeInGroup
	}
	return SurelyInGroup
}
