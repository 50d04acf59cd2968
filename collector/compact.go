package collector

import (
	"cmp"
	"context"
	"slices"
)

// idleFlushes is the number of flushes without a count after which a key is dropped when
// its table is replaced.
const idleFlushes = 10

// room makes room in tables that are about to be full, before the cut: the end of the interval,
// with its regular flush. While lines may be spent before the cut (budget.early; negative lines
// mean no bound), it flushes first, so that the counts of dropped keys have been sent.
func (c *Collector) room(ctx context.Context) {
	if b := &c.budget; b.lines < 0 || b.spent < b.early() {
		c.flush(ctx, b.early(), false)
		return
	}
	for i := range c.shards {
		s := &c.shards[i]
		if t := s.table.Load(); t.filled(t.used.Load(), t.bytes.Load()) {
			c.takeCounts(s)
			c.compact(s)
		}
	}
	c.publishFigures()
}

// compact replaces a table that is about to be full by a table with the keys worth keeping. It also
// replaces a table that was made in a flood (a counted one; see pool) after the flood has ended. It
// keeps the keys with unsent counts, unless they take too much room. In addition, it keeps the
// busiest keys seen lately, up to half of the table. The records of the kept keys move from the old
// books to new ones, and shed accounts for the records that remain in the old books.
func (c *Collector) compact(s *shard) {
	old := s.table.Load()
	calm := c.start-s.since > int64(calmFor)
	if !old.filled(old.used.Load(), old.bytes.Load()) && !(old.counted && calm) {
		return
	}
	oldBooks := s.books
	must, all := c.worthKeeping(s, old)
	// Keys that must be kept may take three quarters, so that the table lasts for a
	// while. If they take more, only half of the table is filled.
	room := size{s.keys / 2, len(old.arena) / 2}
	if must.fits(size{s.keys * 3 / 4, len(old.arena) * 3 / 4}) {
		room = size{max(room.keys, must.keys), max(room.bytes, must.bytes)}
	}
	if !all.fits(room) {
		c.sortKept(&s.books)
	}

	t := c.pool.table(s.keys, c.firstUrgentCount(), !calm)
	s.books, c.spare = c.spare, oldBooks
	s.books.clear()
	s.since = c.start
	for _, slot := range c.keep {
		room.keys, room.bytes = room.keys-1, room.bytes-int(old.slots[slot].room())
		if room.keys < 0 || room.bytes < 0 || !c.moveKey(s, t, old, int(slot)) {
			break
		}
	}
	c.shed(s, old, &oldBooks)
	s.table.Store(t)
	for i := range old.slots {
		x := &old.slots[i]
		if n := x.close(); n > 0 { // counts since the flush
			c.addLate(s, x.hash, old.key(x), n)
		}
	}
	c.pool.put(old)
}

// size is the room that a set of keys takes.
type size struct{ keys, bytes int }

func (s size) fits(in size) bool { return s.keys <= in.keys && s.bytes <= in.bytes }

// worthKeeping lists in c.keep the slots whose keys are worth keeping. It returns the size of
// all these keys, and of the keys that must be kept because they are hot, suspect, or have
// unsent counts.
func (c *Collector) worthKeeping(s *shard, t *keyTable) (must, all size) {
	c.keep = c.keep[:0]
	for slot := range s.notes {
		k := &s.notes[slot]
		if k.profile == unseen {
			continue
		}
		needed := c.rank(&s.books, int32(slot)) > 0 || k.local != 0
		if !needed && c.flushes-k.flush >= idleFlushes {
			continue
		}
		c.keep = append(c.keep, int32(slot))
		bytes := int(t.slots[slot].room())
		all = size{all.keys + 1, all.bytes + bytes}
		if needed {
			must = size{must.keys + 1, must.bytes + bytes}
		}
	}
	return must, all
}

// sortKept sorts c.keep by how much the keys are needed, the most needed first.
func (c *Collector) sortKept(from *books) {
	slices.SortFunc(c.keep, func(i, j int32) int {
		a, b := &from.notes[i], &from.notes[j]
		return cmp.Or(
			cmp.Compare(c.rank(from, j), c.rank(from, i)),
			cmp.Compare(b.total(), a.total()),
			cmp.Compare(b.lastCount, a.lastCount),
			cmp.Compare(b.flush, a.flush))
	})
}

// rank returns how much a key is needed: 3 if it is hot, suspect or has a kept account, 2 if it was
// a candidate lately, 1 if it has unsent counts, otherwise 0.
func (c *Collector) rank(from *books, slot int32) int {
	k := &from.notes[slot]
	switch {
	case from.accounts != nil && c.isKept(&from.accounts[slot]):
		return 3
	case k.flags&(isHot|isSuspect) != 0:
		return 3
	case k.load >= c.factor && c.flushes-k.flush < idleFlushes:
		return 2
	case k.total() > 0:
		return 1
	}
	return 0
}

// moveKey moves a key to the next table, and its records from the old books, which are c.spare now,
// to the shard's. It reports whether there was room.
func (c *Collector) moveKey(s *shard, t, old *keyTable, slot int) bool {
	from, was := &old.slots[slot], &c.spare.notes[slot]
	to := t.insert(from.hash, old.key(from))
	if to < 0 {
		return false
	}
	k := &s.notes[to]
	*k = *was
	levels := c.profiles.levels
	copy(c.recents(s, to), c.spare.recents[slot*levels:(slot+1)*levels])
	was.held, was.delta, was.local = 0, 0, 0
	if k.total() > 0 {
		s.unsent.add(to)
	}
	if c.can.Accounts {
		s.accounts[to] = c.spare.accounts[slot]
		c.spare.accounts[slot] = keyAccount{}
		if s.accounts[to].repeats > 0 {
			s.repeats.add(to)
		}
	}
	if k.local != 0 {
		c.local.recordMove(k.local, s, to)
	}
	c.setUrgentCount(s, t, to)
	return true
}

// shed records the counts and the accounts that are dropped with the old table.
func (c *Collector) shed(s *shard, old *keyTable, from *books) {
	largest := int64(0)
	from.each(func(slot int, k *note) {
		c.holdBackInGroup(k, old, slot, k.delta)
		n := int64(k.total())
		largest = max(largest, n)
		c.unsent -= n // these counts will never be sent
		c.aged += n
	})
	s.shed += largest
	for slot := range from.accounts {
		if c.isKept(&from.accounts[slot]) {
			c.shedAccounts++
		}
	}
	for slot := range from.notes {
		c.local.release(c, from.notes[slot].local)
	}
}

// addLate adds the last count of a replaced table's key to the present table.
func (c *Collector) addLate(s *shard, hash uint64, key []byte, n uint64) {
	if out := s.add(hash, key, n); out != added {
		c.handleOutcome(out, n)
	}
}
