package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// claimed returns the amount that a packet claims to be missing before it.
func claimed(a *accounts, m *wire.Meta) uint64 {
	if !a.sums.Stated || m.Seq == a.seq+1 {
		return 0
	}
	more := func(now, then uint64) uint64 { return max(now, then) - then }
	return more(m.Sums.Booked, a.sums.Booked) + more(m.Sums.Loose, a.sums.Loose) + more(m.Sums.HeldBack, a.sums.HeldBack)
}

// forgetAccounts forgets the accounts of a sender from this packet on, because the sender could
// not keep one for as long as it promises, or claims too much.
func (a *accounts) forgetAccounts(m *wire.Meta, left *int) {
	*left += len(a.keys)
	a.keys, a.opened, a.owed, a.gaps, a.began, a.first = nil, m.Sums.Opened, 0, nil, m.Seq, m.Seq
}

// bookLines books the lines of a packet that have an account, the sender's running total of a key
// ([wire.Account]). A line states the total that includes its own count. If the total before it
// is above the counted part of the account, the difference was in lost packets. bookLines reports
// these missing counts as healed. It removes from the packet's counts the ones that were
// counted before, and returns the amounts healed and removed.
func (a *accounts) bookLines(m *wire.Meta, entries []bookedLine, counts []Count, left *int, h Handler) (healed, retold int64) {
	owed := a.isOwed(m.Seq)
	for i := range entries {
		e := &entries[i]
		stated := e.N
		var missing uint64
		var from, to time.Time
		if m.Seq >= a.began {
			missing, from, to = a.bookLine(m, e, left, h)
		} else if a.reportMoved(m, e, h) {
			e.N = 0
		}
		if e.index >= 0 {
			counts[e.index].N = e.N
		}
		retold += stated - e.N
		if owed && e.N == stated {
			a.reduceOwed(uint64(stated), 0, m.Seq-1) // no longer missing
		}
		if missing > 0 {
			healed += int64(missing)
			c := e.Count
			// Counts that were held back have no known time and are not placed, so a count that
			// is placed here was not held back.
			c.N, c.When, c.InGroup = int64(missing), from, NotInGroup
			h.AddHealedCount(c, to)
		}
	}
	return healed, retold
}

// bookLine updates the account of a line's key. It reduces e.N to the part not yet counted, and
// returns the number of missing earlier counts and the time range that they belong to. It also
// reports to h the gaps that hide no more counts of the key.
func (a *accounts) bookLine(m *wire.Meta, e *bookedLine, left *int, h Handler) (missing uint64, from, to time.Time) {
	before := e.Total - uint64(e.N)
	if before > e.Total {
		return 0, from, to // a total is never less than its last count
	}
	key := accountKey{e.Hash, int32(e.Rule)}
	k := a.keys[key]
	switch {
	case k == nil && !a.hasRoom(e.When, left):
		a.opened = max(a.opened, e.Number) // later lines of it lack their beginning
		return 0, from, to
	case k == nil || k.number < e.Number:
		if k == nil {
			if a.keys == nil {
				a.keys = make(map[accountKey]*keyAccount)
			}
			*left--
			k = new(keyAccount)
			a.keys[key] = k
		}
		*k = keyAccount{number: e.Number}
		a.newest = max(a.newest, e.Number)
	case k.number > e.Number:
		if a.reportMoved(m, e, h) { // a line of a newer account overtook it
			e.N = 0
		}
		return 0, from, to
	case e.Total <= k.low && (e.N > 0 || e.Total < k.high): // e.Total == k.high without counts repeats the account
		if e.Total == k.low {
			k.low = before
		} else {
			a.opening.addApart(key, uint64(e.N))
		}
		return 0, from, to
	case e.Total <= k.high:
		a.reportMoved(m, e, h)
		e.N = 0 // counted or healed before, or a line that repeats the account
	}
	agrees := e.Total >= k.high
	if k.seq < a.first && e.Number <= a.opened && before > k.high {
		// The account is older than our state of the sender. Some of it may have been counted
		// before, or be in packets that are not known to be missing.
		a.opening.addApart(key, k.high-k.low)
		k.low, k.high, k.seq, k.since = before, before, 0, m.Seq
	}
	if e.Total > k.high {
		missing = before - k.high
		from, to = a.missingRange(k.seq, m.Seq)
		if agrees = before == k.high || before > k.high && missing <= a.owed && !from.IsZero(); !agrees {
			missing, k.since = 0, m.Seq // the line contradicts the sender's own sums
		}
		if missing > 0 {
			if k.seq >= a.pruned.to || e.Number > a.pruned.opened {
				a.reduceOwed(missing, e.Number, k.seq)
			} else if a.pruned.From.Before(from) { // it may be that old, and is no longer owed
				from = a.pruned.From
			}
			a.rememberHeal(e.Number, heal{k.high, before, from, to})
		}
		k.high = e.Total
	}
	if agrees && k.seq > 0 { // the key had its account both before and after a gap
		for i := range a.gaps {
			if g := &a.gaps[i]; g.from > k.seq && g.to < m.Seq {
				h.ExcludeFromGap(g.ID, e.Rule, e.Hash, true)
			}
		}
	}
	if m.Seq > k.seq {
		k.seq, k.heard = m.Seq, e.When.UnixNano()
	}
	return missing, from, to
}

// hasRoom reports whether another account can be remembered. If there is no room, it first
// forgets idle ones.
func (a *accounts) hasRoom(now time.Time, left *int) bool {
	if *left <= 0 && now.Sub(a.swept).Abs() >= wire.AccountLife/2 {
		a.swept = now
		a.expireIdle(wire.AccountLife, left)
	}
	return *left > 0
}

// rememberHeal remembers a heal, in case the healed line arrives later.
func (a *accounts) rememberHeal(number uint64, x heal) {
	if now := &a.heals[0]; now.byAccount == nil || a.start.Sub(now.began) > healTime {
		a.heals[1] = a.heals[0]
		a.heals[0] = heals{make(map[uint64][]heal), a.start}
	}
	if byAccount := a.heals[0].byAccount; len(byAccount) < keptHeals {
		byAccount[number] = append(byAccount[number], x)
	}
}

// reportMoved reports to h a line that had been healed before it arrived, since its time is
// known now. It returns true if the line had been healed, or if that is no longer known.
func (a *accounts) reportMoved(m *wire.Meta, e *bookedLine, h Handler) bool {
	unknown, before := false, e.Total-uint64(e.N)
	for i := range a.heals {
		for _, x := range a.heals[i].byAccount[e.Number] {
			if x.low <= before && e.Total <= x.high {
				if e.N > 0 {
					h.MoveHealedCount(e.Count, x.from, x.to)
				}
				return true
			}
		}
		unknown = unknown || len(a.heals[i].byAccount) == keptHeals
	}
	return unknown || a.start.Sub(e.When)-time.Duration(m.Sums.Age) > healTime
}

// expireIdle forgets accounts without a line for longer than idle.
func (a *accounts) expireIdle(idle time.Duration, left *int) {
	for key, k := range a.keys {
		if a.start.UnixNano()-k.heard > int64(idle) {
			a.opened = max(a.opened, k.number)
			delete(a.keys, key)
			*left++
		}
	}
}
