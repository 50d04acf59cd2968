package decode

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
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

// agreement says whether a sender has our rules with a share, so that what it reports as held
// back of groups is added to their totals. It changes when the sender's rules change, or ours.
type agreement struct {
	life  uint64 // the incarnation
	agree bool
	since int64 // a flush at the newest change or after it, in ns since the Unix epoch by the sender's clock
}

// inGroup reports whether the groups of a packet's counts have them already: those that begin
// before their own flush were held back. What was reported before the sender's first packet
// is unknown, and so is what was held back when the sender's rules with a share, or ours,
// became the same or others.
func (s *senders) inGroup(from *sender, m *wire.Meta) InGroup {
	a, agree := &from.agreement, m.Groups == s.groups && m.Sums.Told
	if a.life != m.Incarnation {
		*a = agreement{m.Incarnation, agree, math.MinInt64}
	} else if a.agree != agree {
		a.agree, a.since = agree, max(a.since, m.Start+m.Sums.Age)
	}
	switch {
	case m.Sums.Age <= 0:
		return NotInGroup
	case m.Start <= a.since, agree && m.Start <= from.accounts.since:
		return MaybeInGroup
	case agree:
		return SurelyInGroup
	}
	return NotInGroup
}
