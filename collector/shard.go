package collector

import "sync/atomic"

// shard is one part of the collector's keys. Any goroutine may add; all else is
// the flushing goroutine's.
type shard struct {
	table atomic.Pointer[table]
	keys  int // capacity of a table

	books
	since int64 // when the table was replaced: what it shed had been sent by then
	shed  int64 // the most that was shed, unsent, of any one key; not yet told
	_     [64]byte
}

// books are what the flushing goroutine keeps on the slots of a table.
type books struct {
	notes   []note
	recents []recent // a row of profiles.levels for each slot
	unsent  slotSet  // slots with counts that were taken and not sent

	accounts []account // by slot; none where the sink has no use for them
	repeats  slotSet   // slots whose account is to be told again
}

// note is what the flushing goroutine knows of a slot. It is a cache line.
type note struct {
	held   uint64 // counts taken by earlier flushes and not yet sent,
	origin int64  // the first instant that they can be of,
	delta  uint64 // and those taken since
	sent   int64  // when a count was last sent: no part to come is of before

	load  float32 // see profile.count
	level float32 // the load that the slow pace is good for; see pace
	until int64   // when the fast pace ends; 0: the pace is slow

	flush   uint32 // that took a count last,
	busy    uint32 // and how much
	profile uint32
	local   uint16 // its exact count: a number in locals, from 1
	flags   flags
}

type flags uint8

// Flags of a slot: each exempts it from being held back.
const (
	isHot flags = 1 << iota
	isSuspect
)

func (n *note) total() uint64 { return n.held + n.delta }

// exempt tells whether the key may be exempt from being held back: whether it is
// depends on by how much the candidates' mark is raised.
func (n *note) exempt() bool { return n.flags != 0 || n.load >= 1 }

// lines is how many lines the key's counts take: what was held back has a start
// of its own.
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

func (s *shard) init(keys, levels int, mark uint64, accounts bool) {
	t := newTable(keys, mark)
	s.keys, s.books = keys, newBooks(len(t.slots), levels, accounts)
	s.table.Store(t)
}

func newBooks(slots, levels int, accounts bool) books {
	b := books{
		notes:   make([]note, slots),
		recents: make([]recent, slots*levels),
		unsent:  newSlotSet(slots),
		repeats: newSlotSet(slots),
	}
	if accounts {
		b.accounts = make([]account, slots)
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

// add adds to a key's counter; the outcome is never replaced.
func (s *shard) add(hash uint64, key []byte, n uint64) outcome {
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

// addCounted adds to a table that counts who is inside.
func (s *shard) addCounted(t *table, hash uint64, key []byte, n uint64) outcome {
	t.inside.Add(1)
	out := replaced
	if s.table.Load() == t { // else it may be another shard's by now
		out = t.add(hash, key, n)
	}
	t.inside.Add(-1)
	return out
}

// each hands the slots with unsent counts to f, which may take out the one it has
// got.
func (b *books) each(f func(at int, n *note)) {
	b.unsent.each(func(at int) { f(at, &b.notes[at]) })
}
