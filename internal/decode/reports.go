package decode

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
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
	group, ok := d.decodeText(d.encoding, l.Group)
	if !ok {
		return true
	}
	d.stats.HeldBack.Add(1)
	d.heldInGroups += l.N
	if d.groups { // otherwise the sender has other rules, and its counts come later
		d.heldBack = append(d.heldBack, HeldBack{Rule: head.rule, Group: group, N: l.N, When: when})
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
	a, agree := &from.agreement, m.Groups == s.groups && m.Sums.Stated
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

// OriginCount reports that about N of a key's counts, at When or soon after, had the same route
// or caller. Senders report it for hot keys alone.
type OriginCount struct {
	Rule int
	Hash uint64 // rules.Hash of the text
	Text []byte
	Kind wire.OriginKind
	Name []byte
	N    int64
	When time.Time
}

// OriginHandler is a [Handler] that receives the origins of counts.
type OriginHandler interface {
	// AddOrigin receives an origin of the counts of a hot key. Its bytes are valid only during
	// the call.
	AddOrigin(OriginCount)
}

// readOrigin reads an origin line. It returns false for any other line.
func (d *Decoder) readOrigin(line []byte, when time.Time, h Handler) bool {
	if !wire.IsOrigin(line) {
		return false
	}
	l, err := wire.ParseOrigin(line)
	head, ok := d.headOf(l.Prefix, err)
	if !ok {
		return true
	}
	key, ok := d.decodeText(d.encoding, l.Key)
	if !ok {
		return true
	}
	name, ok := d.decodeText(wire.Plain, l.Name)
	if !ok {
		return true
	}
	d.stats.Origins.Add(1)
	if h, wants := h.(OriginHandler); wants {
		h.AddOrigin(OriginCount{Rule: head.rule, Hash: rules.Hash(key), Text: key, Kind: l.Kind, Name: name, N: l.N, When: when})
	}
	return true
}

// headOf returns the head of the rule with a prefix, for a line that is no count. err is the
// error of reading that line. If ok is false, the line has been counted by the reason.
func (d *Decoder) headOf(prefix []byte, err error) (head lineHead, ok bool) {
	if err != nil {
		d.stats.Malformed.Add(1)
		return head, false
	}
	if head, ok = d.rules[string(prefix)]; !ok {
		d.stats.NoRule.Add(1)
	}
	return head, ok
}
