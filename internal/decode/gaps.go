package decode

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// addGap compares the sums of a packet, the newest so far, with the sums before it. It returns
// the gap between them, or nil if no counts are missing. start is the start of the packet's
// flush.
func (a *accounts) addGap(m *wire.Meta, start time.Time, id uint64) *openGap {
	if !a.sums.Stated || m.Seq == a.seq+1 || m.Sums.Booked < a.sums.Booked || m.Sums.Loose < a.sums.Loose {
		return nil
	}
	last := start.Add(time.Duration(-m.Sums.Since)) // time of the newest missing counts
	wasSet := last.Before(a.start) || last.After(start)
	if wasSet { // the sender's clock was set in between
		last = start
	}
	g := openGap{
		Gap:  Gap{ID: id, From: a.start, To: last, Loose: toCount(m.Sums.Loose - a.sums.Loose), Booked: toCount(m.Sums.Booked - a.sums.Booked), HeldBack: toCount(m.Sums.HeldBack - min(m.Sums.HeldBack, a.sums.HeldBack))},
		from: a.seq + 1, to: m.Seq - 1, opened: m.Sums.Opened, openedBefore: a.sums.Opened,
	}
	if g.Loose+g.Booked+g.HeldBack == 0 {
		return nil // the packets held repeated accounts, or were heartbeats
	}
	if m.Sums.Parts != a.sums.Parts { // some were held back since an unknown time
		g.From = time.Unix(0, 0)
	} else if g.from == g.to && !wasSet {
		g.From = last
	} else if g.To.Before(g.From) { // the clock was set back, or its offset is estimated differently now
		g.From, g.To = g.To, g.From
	}
	g.unheard = g.Booked
	a.insertGap(len(a.gaps), g)
	a.owed += uint64(g.Booked)
	for i := range a.gaps {
		a.gaps[i].owed += uint64(g.Booked)
	}
	return &a.gaps[len(a.gaps)-1]
}

// insertGap adds a gap at a place. If there are too many, the oldest can no longer become smaller.
func (a *accounts) insertGap(index int, g openGap) {
	if a.gaps = slices.Insert(a.gaps, index, g); len(a.gaps) > maxOpenGaps {
		a.pruned = a.gaps[0]
		a.gaps = slices.Delete(a.gaps, 0, 1)
	}
}

// subtractArrived subtracts a packet of the gap that has arrived. Some of its counts on
// accounts may have been healed before, so the counts in packets still missing are a second
// bound.
func (g *openGap) subtractArrived(arrived *packetSums) {
	g.Loose = max(0, g.Loose-toCount(arrived.loose))
	g.HeldBack = max(0, g.HeldBack-toCount(arrived.heldBack))
	g.unheard = max(0, g.unheard-toCount(arrived.booked))
	g.Booked = min(g.Booked, g.unheard)
}

// excludeKeys reports to h the keys that had no count in a gap except on their accounts. opened
// is the number of accounts opened before the gap.
func (a *accounts) excludeKeys(g *Gap, opened uint64, h Handler) {
	if g.Loose == 0 {
		return
	}
	for key, k := range a.keys {
		if k.number <= opened && g.To.UnixNano()-k.heard <= int64(wire.AccountLife) {
			h.ExcludeFromGap(g.ID, int(key.rule), key.hash, false)
		}
	}
}

// missingRange returns the time range of the missing counts on accounts between two sequences. It
// returns zero times if there are none.
func (a *accounts) missingRange(after, before uint64) (from, to time.Time) {
	for i := range a.gaps {
		g := &a.gaps[i]
		if g.Booked == 0 || g.to <= after || g.from >= before {
			continue
		}
		if from.IsZero() || g.From.Before(from) {
			from = g.From
		}
		to = base.Later(to, g.To)
	}
	return from, to
}

// isOwed reports whether a packet fills part of an open gap.
func (a *accounts) isOwed(seq uint64) bool {
	return slices.ContainsFunc(a.gaps, func(g openGap) bool { return g.from <= seq && seq <= g.to })
}

// reduceOwed subtracts n counts of an account, which were missing after a sequence, from the owed
// counts. Some counts stay unknown, such as those of an account older than the sender's state.
// They count as missing in their gap and the gaps before it, but not in those after it.
func (a *accounts) reduceOwed(n, number, after uint64) {
	a.owed -= min(n, a.owed)
	for i := range a.gaps {
		g := &a.gaps[i]
		g.owed -= min(n, g.owed)
		if g.to > after && g.opened >= number { // the counts can belong to this gap
			return
		}
	}
}

// finishPacket records the contents of a packet, and reports the gaps that became smaller. No gap
// lacks more counts on accounts than are owed in all, or since that gap.
func (s *senders) finishPacket(a *accounts, m *wire.Meta, start time.Time, contents *packetSums, h Handler) {
	a.addByRule(m.Seq, contents.byRule, s.ruled.size, h)
	a.addBuckets(m, s.jumps, contents.byBucket, h)
	if m.Seq >= a.seq {
		if m.Seq > a.seq {
			a.seq, a.start, a.sums = m.Seq, start.Add(time.Duration(m.Sums.Age)), m.Sums
		}
		a.sums.Booked += contents.booked // packets of a stream may come in parts
		a.sums.Loose += contents.loose
		a.sums.HeldBack += contents.heldBack
	} else {
		a.opening.addEarlierPacket(m, contents)
		unheard := int64(0)
		for i := range a.gaps {
			g := &a.gaps[i]
			if g.from <= m.Seq && m.Seq <= g.to && contents.booked+contents.loose+contents.heldBack > 0 {
				g.subtractArrived(contents)
				h.RecordGap(g.Gap)
			}
		}
		for i := len(a.gaps) - 1; i >= 0; i-- {
			unheard += a.gaps[i].unheard
			a.gaps[i].owed = min(a.gaps[i].owed, uint64(unheard))
		}
		a.owed = min(a.owed, uint64(unheard))
	}
	owed, filled := toCount(a.owed), a.owed == 0
	for i := range a.gaps {
		g := &a.gaps[i]
		limit := owed
		if i > 0 { // no gap is before the first one
			limit = min(limit, toCount(g.owed))
		}
		if g.Booked > 0 && g.Booked >= 2*limit { // a smaller decrease is not worth a report
			g.Booked, filled = limit, filled || limit == 0
			h.RecordGap(g.Gap)
		}
	}
	if !filled {
		return
	}
	a.gaps = slices.DeleteFunc(a.gaps, func(g openGap) bool {
		return g.Booked == 0 && (g.Loose+g.HeldBack == 0 || owed == 0 && a.start.Sub(g.To) > idleAccount)
	})
}

// prune forgets gaps that are older than all windows. Their counts are no longer owed.
func (a *accounts) prune(keep time.Duration) {
	if len(a.gaps) == 0 || a.start.Sub(a.gaps[0].To) <= keep {
		return
	}
	owed := uint64(0)
	a.gaps = slices.DeleteFunc(a.gaps, func(g openGap) bool {
		if a.start.Sub(g.To) > keep {
			a.pruned = g
			return true
		}
		owed += uint64(g.Booked)
		return false
	})
	a.owed = min(a.owed, owed)
}

// toCount converts a sum to a count, and bounds it so that no false claim overflows.
func toCount(n uint64) int64 { return int64(min(n, wire.MaxCount)) }
