package decode

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// readHeldBack reads a held-back line. It returns false for any other line.
func (d *Decoder) readHeldBack(line []byte, when time.Time) bool {
	if !wire.IsHeldBack(line) {
		return false
	}
	l, err := wire.ParseHeldBack(line)
	head, ok := d.headOf(l.Prefix, err)
	if !ok {
		return true
	}
	start := len(d.text) // d.text already holds texts of the packet's counts
	text, err := d.encoding.AppendDecoded(d.text, l.Group)
	if err != nil {
		d.stats.BadKey.Add(1)
		return true
	}
	d.text = text
	d.stats.HeldBack.Add(1)
	d.heldInGroups += l.N
	if d.groups { // otherwise the sender has other rules, and its counts come later
		d.heldBack = append(d.heldBack, HeldBack{Rule: head.rule, Group: text[start:], N: l.N, When: when})
	}
	return true
}

// agreement records whether a sender has the same rules with a share as we do. Only then are
// the counts that it reports as held back added to the totals of groups. It changes when the
// sender's rules change, or ours.
type agreement struct {
	life  uint64 // incarnation of the sender
	agree bool
	since int64 // start of a flush at the newest change or after it, in ns since the Unix epoch by the sender's clock
}

// inGroup reports whether the totals of groups already include a packet's counts. Counts that
// begin before their own flush were held back, and so may have been reported. Reports from
// before the sender's first packet are unknown. So are those from before the newest change of
// the sender's rules with a share, or ours.
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
		return CertainlyInGroup
	}
	return NotInGroup
}
