package collector

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// shard is one part of the collector's keys. Any goroutine may add; flush is
// called by one goroutine at a time.
type shard struct {
	table atomic.Pointer[table]
	keys  int // capacity of a table

	// Of the flushing goroutine alone:
	flushes uint32
	seen    []seen // by slot
	_       [64]byte
}

// seen is when a slot's key was last counted, and how often.
type seen struct {
	flush uint32
	count uint32
}

// idleFlushes is how many flushes without a count a key survives when its table
// is replaced.
const idleFlushes = 10

func (s *shard) init(keys int) {
	s.keys = keys
	s.replaceTable()
}

func (s *shard) replaceTable() (t *table) {
	t = newTable(s.keys)
	s.seen = make([]seen, len(t.slots))
	s.table.Store(t)
	return t
}

// add reports whether the key was counted; if not, the shard is full.
func (s *shard) add(hash uint64, key []byte, n uint64) bool {
	for {
		switch s.table.Load().add(hash, key, n) {
		case added:
			return true
		case full:
			return false
		case replaced:
			// The new table was in place before the old one was closed.
		}
	}
}

// flush takes the counts that have come since the last one and hands each to
// emit. The key stays as it is for as long as it is held.
func (s *shard) flush(emit func(key []byte, n uint64)) {
	s.flushes++
	t := s.table.Load()
	t.take(func(at int, n uint64) {
		s.seen[at] = seen{s.flushes, uint32(min(n, 1<<32-1))}
		emit(t.key(&t.slots[at]), n)
	})
	if t.used.Load() > t.limit/4*3 || t.bytes.Load() > int64(len(t.arena)/4*3) {
		s.compact(t, emit)
	}
}

// compact replaces the table by one that holds the keys worth keeping: those
// seen lately, and of these the busiest, up to half a table. What is shed has
// been sent already; when it comes back it is a new key.
func (s *shard) compact(old *table, emit func(key []byte, n uint64)) {
	keep := make([]int, 0, s.keys)
	was := s.seen
	for at, seen := range was {
		if seen.flush > 0 && s.flushes-seen.flush < idleFlushes {
			keep = append(keep, at)
		}
	}
	slices.SortFunc(keep, func(a, b int) int {
		return cmp.Or(cmp.Compare(was[b].count, was[a].count), cmp.Compare(was[b].flush, was[a].flush))
	})
	t := s.replaceTable()
	room := len(t.arena) / 2
	for i, at := range keep {
		from := &old.slots[at]
		if room -= int(from.len); i >= s.keys/2 || room < 0 {
			break
		}
		t.add(from.hash.Load(), old.key(from), 0)
	}
	for at := range old.slots {
		from := &old.slots[at]
		if n, ok := from.close(); ok && n > 0 {
			emit(old.key(from), n) // it came since the flush
		}
	}
}
