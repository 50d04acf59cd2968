package collector

import "sync/atomic"

// shard is one part of the collector's keys. Any goroutine may add; everything else is done by
// the flushing goroutine.
type shard struct {
	table atomic.Pointer[keyTable]
	keys  int // capacity of a table

	books
	since int64 // time when the table was replaced
	shed  int64 // the highest unsent count of a key that was dropped, to be stated
	_     [64]byte
}

// books are the flushing goroutine's records about the slots of a table.
type books struct {
	notes   []note
	recents []recent // profiles.levels of them for each slot
	unsent  bitset   // slots whose counts were taken and not sent

	accounts []keyAccount // by slot; empty if the sink does not send accounts
	repeats  bitset       // slots whose account is due again
}

// note is the flushing goroutine's record about a slot. It is a cache line.
type note struct {
	held   uint64 // sum of the counts that earlier flushes took and did not send
	origin int64  // the earliest possible time of held
	delta  uint64 // sum of the counts taken since
	sent   int64  // when a count was last sent; later parts do not begin before that

	load  float32 // load returned by profile.count
	level float32 // load up to which the pace stays slow; see pace
	until int64   // when the fast pace ends, or 0 if the pace is slow

	flush     uint32 // the last flush that took a count
	lastCount uint32 // the size of that count
	profile   uint32
	local     uint16 // number of the key's exact count in localDetector, from 1, or 0
	flags     flags
}

type flags uint8

// Flags of a slot. Each flag exempts the key from being held back.
const (
	isHot flags = 1 << iota
	isSuspect
)

func (n *note) total() uint64 { return n.held + n.delta }

// exempt reports whether the key may be exempt from being held back. It also depends on the
// factor that raises the candidates' mark.
func (n *note) exempt() bool { return n.flags != 0 || n.load >= 1 }

// lines returns the number of lines that the key's counts take. Held-back counts have their
// own start, and so their own line.
func (n *note) lines() int {
	lines := 0
	if n.held > 0 {
		lines++
	}
	if n.delta > 0 {
		lines++
	}
	return lines
}

func (s *shard) init(keys, levels int, urgentCount uint64, accounts bool) {
	t := newTable(keys, urgentCount)
	s.keys, s.books = keys, newBooks(len(t.slots), levels, accounts)
	s.table.Store(t)
}

func newBooks(slots, levels int, accounts bool) books {
	b := books{
		notes:   make([]note, slots),
		recents: make([]recent, slots*levels),
		unsent:  newBitset(slots),
		repeats: newBitset(slots),
	}
	if accounts {
		b.accounts = make([]keyAccount, slots)
	}
	return b
}

func (b *books) clear() {
	clear(b.notes)
	clear(b.recents)
	b.unsent.reset()
	clear(b.accounts)
	b.repeats.reset()
}

// add adds n to a key's counter. It never returns the outcome replaced.
func (s *shard) add(hash uint64, key []byte, n uint64) addOutcome {
	for {
		t := s.table.Load()
		if t.counted {
			if out := s.addCounted(t, hash, key, n); out != replaced {
				return out
			}
			continue
		}
		if out := t.add(hash, key, n); out != replaced {
			return out
		}
		// The new table was in place before the old one was closed.
	}
}

// addCounted adds n to a key's counter in a counted table.
func (s *shard) addCounted(t *keyTable, hash uint64, key []byte, n uint64) addOutcome {
	t.inside.Add(1)
	out := replaced
	if s.table.Load() == t { // otherwise another shard may use it by now
		out = t.add(hash, key, n)
	}
	t.inside.Add(-1)
	return out
}

// each calls f for each slot with unsent counts. f may remove that slot from unsent.
func (b *books) each(f func(slot int, n *note)) {
	b.unsent.each(func(slot int) { f(slot, &b.notes[slot]) })
}
