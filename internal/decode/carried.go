package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
)

// A gap just before the cut of a snapshot would bound all keys for good. The accounts of the
// next second would have shown the lost counts, but they reach the next process. So the windows
// are saved without such gaps, and the gap of the restart starts with the first of them.

// carriedFor is how long before the cut a gap may have ended to be carried. Senders repeat
// their accounts each second, and packets with them can be lost.
const carriedFor = 2500 * time.Millisecond

// carryGaps returns the part of the restart's gap from before the cut, and adds the IDs of its
// gaps to ids. It sets sums, by rule, to the values before those gaps.
func (a *accounts) carryGaps(cut time.Time, sums *snapshot.Sums, ids map[uint64]bool) (c snapshot.Carried) {
	var l *lack
	stated := sums.Seq
	for i := range a.gaps {
		g := &a.gaps[i]
		if cut.Sub(g.To) > carriedFor && c.Seq == 0 {
			continue
		}
		if c.Seq == 0 {
			c = snapshot.Carried{Seq: g.from, Opened: g.openedBefore, From: g.From, To: g.To}
		}
		if g.From.Before(c.From) {
			c.From = g.From
		}
		c.To = base.Later(c.To, g.To)
		c.Loose, c.Booked, c.HeldBack = c.Loose+uint64(g.Loose), c.Booked+uint64(g.Booked), c.HeldBack+uint64(g.HeldBack)
		ids[g.ID] = true
		switch {
		case g.lack != nil && g.lack != l:
			if l = g.lack; l.from < sums.Seq {
				sums.Seq = l.from
			}
			for place, n := range l.missing[:min(len(l.missing), len(sums.Have))] {
				sums.Have[place] -= n
			}
		case g.lack == nil && g.from < stated: // it was never divided by rule
			sums.Have = nil
		}
	}
	for _, n := range [...]*uint64{&c.Loose, &c.Booked, &c.HeldBack} {
		*n = min(*n, wire.MaxCount)
	}
	c.From = savedTime(c.From)
	return c
}

// knownTo returns the packet after which the next line of k shows a loss. That is the packet
// before the carried gaps if k was opened and followed before them.
func (k *keyAccount) knownTo(c *snapshot.Carried) uint64 {
	if c.Seq > 0 && k.number <= c.Opened && k.since < c.Seq {
		return min(k.seq, c.Seq-1)
	}
	return k.seq
}

// savedTime returns t, or the next instant if it is the epoch. Gaps of an unknown time begin at
// the epoch, which means no time in a snapshot.
func savedTime(t time.Time) time.Time {
	if t.UnixNano() == 0 {
		return time.Unix(0, 1)
	}
	return t
}

// withCarried returns the gap of the restart up to the packet before next, including the loss
// carried from before the cut. It extends g or, if g is nil, adds a gap.
func (a *accounts) withCarried(g *openGap, next, opened, id uint64) *openGap {
	c := &a.carriedOver
	if c.Seq == 0 {
		return g
	}
	if g == nil {
		a.gaps = append(a.gaps, openGap{Gap: Gap{ID: id, From: c.From, To: c.To}, to: next - 1, opened: opened})
		g = &a.gaps[len(a.gaps)-1]
	}
	if g.from, g.openedBefore = c.Seq, c.Opened; c.From.Before(g.From) {
		g.From = c.From
	}
	g.To = base.Later(g.To, c.To)
	g.Loose, g.Booked, g.HeldBack = g.Loose+toCount(c.Loose), g.Booked+toCount(c.Booked), g.HeldBack+toCount(c.HeldBack)
	g.unheard, g.owed = g.Booked, uint64(g.Booked)
	return g
}
