package aggregator

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/wire"
)

// Gap describes the counts of one sender that were lost on the way, as far as they are
// known. A gap is reported again under the same ID when some of its counts are found.
type Gap struct {
	ID       uint64
	From, To time.Time // of the missing counts
	// Loose is how many counts are missing that stood on no account, of any keys, and
	// Booked how many that did. Keys that are spared have none of the former.
	Loose, Booked int64
	// HeldBack is how much is missing of what was told as held back of groups.
	HeldBack int64
	// ByRule is how many of them may be of each rule, by its number; nil: any may be of any.
	ByRule []RuleGap
}

// packetSums are what a packet held, as [wire.Sums] have it.
type packetSums struct {
	booked, loose, heldBack uint64
	byRule                  []uint64 // as [ruleSums] have them
}

// accounts are what is known of one sender's sums and accounts: what it had sent
// before a packet tells how much was in those that are missing, and accounts tell
// whose counts these were. Guarded by the senders' lock.
type accounts struct {
	life  uint64    // the incarnation
	sums  wire.Sums // as they have to be before the next packet
	seq   uint64    // the newest
	start time.Time // of its flush
	began uint64    // what came before is not known any more
	first uint64    // from this on each packet has come or is in a gap
	since int64     // the start of the flush of the first one, in ns since the Unix epoch by the sender's clock

	opened uint64 // accounts up to this one may be older than what is known here
	keys   map[accountKey]*keyAccount
	owed   uint64  // counts on accounts that are missing, or more
	pruned openGap // the newest of those whose counts are owed no more
	gaps   []openGap
	heals  [2]heals // of late and before that, should what was late come after all
	rules  ruleSums
	swept  time.Time
}

type accountKey struct {
	hash uint64
	rule int32
}

// keyAccount is what of an account has been counted: from low on, up to high.
type keyAccount struct {
	number, low, high uint64
	seq               uint64 // of the newest packet with it
	heard             int64  // the start of that packet's counts, in ns since the Unix epoch
}

// heal is a part of an account that was made up for, and where it was counted.
type heal struct {
	low, high uint64
	from, to  time.Time
}

// heals are those of some time, by the numbers of their accounts.
type heals struct {
	of    map[uint64][]heal
	began time.Time
}

// openGap is a gap that may become smaller still.
type openGap struct {
	Gap
	from, to uint64 // sequences
	opened   uint64 // accounts, when the next packet was made
	unheard  int64  // counts on accounts in those of its packets that have not come
}

const (
	// accountSize is about what an account takes that is remembered. A key whose account
	// is not is bounded by what is missing of all keys.
	accountSize = 128
	// accountsPart is the part of the memory that accounts have: the eighth.
	accountsPart = 8
	// keptHeals is of how many accounts of a sender the heals of some time are known, and
	// healTime that time: what comes later than windows wait for is placed nowhere.
	keptHeals = 4096
	healTime  = DefaultGrace
	// maxOpenGaps bounds those of a sender that may become smaller.
	maxOpenGaps = 256
	// idleAccount is how long an account is remembered of which nothing is heard.
	idleAccount = time.Minute
)

// SplitMemory parts what an aggregator may hold into that of its windows and that of the
// accounts of keys, by which what is lost is made up for.
func SplitMemory(bytes int64) (windows, accounts int64) {
	return bytes - bytes/accountsPart, bytes / accountsPart
}

// LimitAccounts bounds how many bytes the accounts of keys may hold, all senders together:
// without it, that of [DefaultMemory]. It is for before the first packet.
func (d *Decoder) LimitAccounts(bytes int64) { d.senders.accountsLeft = int(bytes / accountSize) }

// entry is a line with an account.
type entry struct {
	Count
	wire.Account
	at int // its place among the packet's counts, -1: it has none
}

// begin forgets the accounts of a sender that could not keep one as long as it promises,
// from this packet on.
func (a *accounts) begin(m *wire.Meta, left *int) {
	*left += len(a.keys)
	a.keys, a.opened, a.owed, a.gaps, a.began, a.first = nil, m.Sums.Opened, 0, nil, m.Seq, m.Seq
}

// gap compares the sums of a packet, the newest so far, with what came before it, and
// returns what is missing in between; nil if no counts are. Its flush began at start.
func (a *accounts) gap(m *wire.Meta, start time.Time, id uint64) *openGap {
	if !a.sums.Told || m.Seq == a.seq+1 || m.Sums.Booked < a.sums.Booked || m.Sums.Loose < a.sums.Loose {
		return nil
	}
	last := start.Add(time.Duration(-m.Sums.Since)) // the newest that is missing
	wasSet := last.Before(a.start) || last.After(start)
	if wasSet { // the sender's clock, in between
		last = start
	}
	g := openGap{
		Gap:  Gap{ID: id, From: a.start, To: last, Loose: toCount(m.Sums.Loose - a.sums.Loose), Booked: toCount(m.Sums.Booked - a.sums.Booked), HeldBack: toCount(m.Sums.HeldBack - min(m.Sums.HeldBack, a.sums.HeldBack))},
		from: a.seq + 1, to: m.Seq - 1, opened: m.Sums.Opened,
	}
	if g.Loose+g.Booked+g.HeldBack == 0 {
		return nil // they told of accounts alone, or that the sender lives
	}
	if m.Sums.Parts != a.sums.Parts { // some were held back, nobody knows since when
		g.From = time.Unix(0, 0)
	} else if g.from == g.to && !wasSet {
		g.From = last
	} else if g.To.Before(g.From) { // or is taken for another
		g.From, g.To = g.To, g.From
	}
	if len(a.gaps) == maxOpenGaps { // the oldest stays as large as it is
		a.pruned = a.gaps[0]
		a.gaps = slices.Delete(a.gaps, 0, 1)
	}
	g.unheard = g.Booked
	a.gaps = append(a.gaps, g)
	a.owed += uint64(g.Booked)
	return &a.gaps[len(a.gaps)-1]
}

// told is the gap as it is told: what is told stays as it is.
func (g *openGap) told() Gap {
	of := g.Gap
	of.ByRule = slices.Clone(g.ByRule)
	return of
}

// found notes what a packet of the gap held that has come. Of its counts on accounts some
// may have been made up for before: what has not come is a bound of its own.
func (g *openGap) found(of *packetSums, ruled *ruled) {
	g.Loose = max(0, g.Loose-toCount(of.loose))
	g.HeldBack = max(0, g.HeldBack-toCount(of.heldBack))
	g.unheard = max(0, g.unheard-toCount(of.booked))
	g.Booked = min(g.Booked, g.unheard)
	if g.ByRule == nil {
		return
	}
	for place, number := range ruled.numbers {
		left := &g.ByRule[number]
		left.Loose = max(0, left.Loose-toCount(of.byRule[2*place]))
		left.Booked = max(0, left.Booked-toCount(of.byRule[2*place+1]))
	}
}

// refine tells of the gaps since a packet how much of each rule they can lack.
func (a *accounts) refine(ruled *ruled, between []uint64, since uint64, h Handler) {
	if between == nil {
		return
	}
	for i := range a.gaps {
		if g := &a.gaps[i]; g.from > since && g.ByRule == nil {
			g.ByRule = ruled.byRule(between)
			h.Missing(g.told())
		}
	}
}

// spare tells which keys had no count in a gap but on their accounts.
func (a *accounts) spare(g *Gap, h Handler) {
	if g.Loose == 0 {
		return
	}
	for key, k := range a.keys {
		if g.To.UnixNano()-k.heard <= int64(wire.AccountLife) {
			h.Spare(g.ID, int(key.rule), key.hash, false)
		}
	}
}

// settle books the lines of a packet that have an account. It reports the missing counts
// that they reveal as healed, and removes from the packet's counts what was counted
// before.
func (a *accounts) settle(m *wire.Meta, entries []entry, counts []Count, left *int, h Handler) (healed, retold int64) {
	owed := a.isOwed(m.Seq)
	for i := range entries {
		e := &entries[i]
		own := e.N
		var missing uint64
		var from, to time.Time
		if m.Seq >= a.began {
			missing, from, to = a.book(m, e, left, h)
		} else if a.move(m, e, h) {
			e.N = 0
		}
		if e.at >= 0 {
			counts[e.at].N = e.N
		}
		retold += own - e.N
		if owed && e.N == own {
			a.pay(uint64(own)) // it was missing until now
		}
		if missing > 0 {
			healed += int64(missing)
			c := e.Count
			// Of what was held back nobody knows when it was, so that what can be placed
			// was not.
			c.N, c.When, c.InGroup = int64(missing), from, NotInGroup
			h.Healed(c, to)
		}
	}
	return healed, retold
}

// book brings a key's account up to date. It leaves in the entry what of its count had
// not been counted before, and returns how many counts before it are missing, and of
// when they can be.
func (a *accounts) book(m *wire.Meta, e *entry, left *int, h Handler) (missing uint64, from, to time.Time) {
	before := e.Total - uint64(e.N)
	if before > e.Total {
		return 0, from, to // no account is less than its last count
	}
	key := accountKey{e.Hash, int32(e.Rule)}
	k := a.keys[key]
	switch {
	case k == nil && !a.room(e.When, left):
		a.opened = max(a.opened, e.Number) // what comes of it later has no beginning
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
	case k.number > e.Number:
		if a.move(m, e, h) { // it was overtaken by a line of another account
			e.N = 0
		}
		return 0, from, to
	case e.Total <= k.low:
		if e.Total == k.low {
			k.low = before
		}
		return 0, from, to
	case e.Total <= k.high:
		a.move(m, e, h)
		e.N = 0 // made up for already, or a line that repeats the account
	}
	agrees := e.Total >= k.high
	if k.seq < a.first && e.Number <= a.opened && before > k.high {
		// It is older than what is known of the sender, so that some of it may have been
		// counted before, or be in packets that nobody misses.
		k.low, k.high, k.seq = before, before, 0
	}
	if e.Total > k.high {
		missing = before - k.high
		from, to = a.missed(k.seq, m.Seq)
		if agrees = before == k.high || before > k.high && missing <= a.owed && !from.IsZero(); !agrees {
			missing = 0 // with what the sender says of itself
		}
		if missing > 0 {
			if k.seq >= a.pruned.to || e.Number > a.pruned.opened { // else it may be owed no more
				a.pay(missing)
			}
			a.keep(e.Number, heal{k.high, before, from, to})
		}
		k.high = e.Total
	}
	if agrees && k.seq > 0 { // it had its account before a gap, and has it after
		for i := range a.gaps {
			if g := &a.gaps[i]; g.from > k.seq && g.to < m.Seq {
				h.Spare(g.ID, e.Rule, e.Hash, true)
			}
		}
	}
	if m.Seq > k.seq {
		k.seq, k.heard = m.Seq, e.When.UnixNano()
	}
	return missing, from, to
}

// room reports whether another account can be remembered. When there is no room it first
// forgets idle ones.
func (a *accounts) room(now time.Time, left *int) bool {
	if *left <= 0 && now.Sub(a.swept).Abs() >= wire.AccountLife/2 {
		a.swept = now
		a.expire(wire.AccountLife, left)
	}
	return *left > 0
}

// keep remembers a heal.
func (a *accounts) keep(number uint64, x heal) {
	if now := &a.heals[0]; now.of == nil || a.start.Sub(now.began) > healTime {
		a.heals[1] = a.heals[0]
		a.heals[0] = heals{make(map[uint64][]heal), a.start}
	}
	if of := a.heals[0].of; len(of) < keptHeals {
		of[number] = append(of[number], x)
	}
}

// move tells of a line that has been made up for where it was counted. It is true if it
// was, or that is not known any more.
func (a *accounts) move(m *wire.Meta, e *entry, h Handler) bool {
	unknown, before := false, e.Total-uint64(e.N)
	for i := range a.heals {
		for _, x := range a.heals[i].of[e.Number] {
			if x.low <= before && e.Total <= x.high {
				if e.N > 0 {
					h.Moved(e.Count, x.from, x.to)
				}
				return true
			}
		}
		unknown = unknown || len(a.heals[i].of) == keptHeals
	}
	return unknown || a.start.Sub(e.When)-time.Duration(m.Sums.Age) > healTime
}

// missed is of when counts on accounts are missing between two sequences; zero: none are.
func (a *accounts) missed(after, before uint64) (from, to time.Time) {
	for i := range a.gaps {
		g := &a.gaps[i]
		if g.Booked == 0 || g.to <= after || g.from >= before {
			continue
		}
		if from.IsZero() || g.From.Before(from) {
			from = g.From
		}
		if g.To.After(to) {
			to = g.To
		}
	}
	return from, to
}

// isOwed reports whether a packet fills part of an open gap.
func (a *accounts) isOwed(seq uint64) bool {
	return slices.ContainsFunc(a.gaps, func(g openGap) bool { return g.from <= seq && seq <= g.to })
}

// pay takes off what is owed.
func (a *accounts) pay(n uint64) { a.owed -= min(n, a.owed) }

// finish notes what a packet held, and tells of gaps that are smaller now: none lacks more
// counts on accounts than are owed in all.
func (a *accounts) finish(m *wire.Meta, start time.Time, of packetSums, ruled *ruled, h Handler) {
	a.rules.note(m.Seq, of.byRule)
	if m.Seq >= a.seq {
		if m.Seq > a.seq {
			a.seq, a.start, a.sums = m.Seq, start.Add(time.Duration(m.Sums.Age)), m.Sums
		}
		a.sums.Booked += of.booked // those of a stream may come in parts
		a.sums.Loose += of.loose
		a.sums.HeldBack += of.heldBack
	} else {
		unheard := int64(0)
		for i := range a.gaps {
			g := &a.gaps[i]
			if g.from <= m.Seq && m.Seq <= g.to && of.booked+of.loose+of.heldBack > 0 {
				g.found(&of, ruled)
				h.Missing(g.told())
			}
			unheard += g.unheard
		}
		a.owed = min(a.owed, uint64(unheard))
	}
	owed := toCount(a.owed)
	for i := range a.gaps {
		if g := &a.gaps[i]; g.Booked > 0 && g.Booked >= 2*owed { // a little less is not worth telling
			g.Booked = owed
			h.Missing(g.told())
		}
	}
	if owed > 0 || len(a.gaps) == 0 {
		return
	}
	a.gaps = slices.DeleteFunc(a.gaps, func(g openGap) bool { return g.Loose+g.HeldBack == 0 || a.start.Sub(g.To) > idleAccount })
}

// prune forgets gaps that are out of all windows: their counts are owed no more.
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

// expire forgets accounts of which nothing was heard for so long.
func (a *accounts) expire(idle time.Duration, left *int) {
	for key, k := range a.keys {
		if a.start.UnixNano()-k.heard > int64(idle) {
			a.opened = max(a.opened, k.number)
			delete(a.keys, key)
			*left++
		}
	}
}

// toCount is a sum as a count, so bounded that no claim wraps around to nothing.
func toCount(n uint64) int64 { return int64(min(n, wire.MaxCount)) }
