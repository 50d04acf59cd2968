package collector

import (
	"fmt"
	"testing"
)

func flushed(s *shard) map[string]uint64 {
	counts := make(map[string]uint64)
	s.flush(func(key []byte, n uint64) { counts[string(key)] += n })
	return counts
}

// When a table is replaced, the busiest keys of late stay, and those that have
// been idle for long leave.
func TestCompactKeepsTheBusiest(t *testing.T) {
	var s shard
	s.init(64)
	add := func(name string, n uint64) {
		t.Helper()
		if !s.add(uint64(len(name))<<32|uint64(name[len(name)-1])*97, []byte(name), n) {
			t.Fatalf("no room for %s", name)
		}
	}
	add("idle", 1_000)
	flushed(&s)
	for i := range idleFlushes {
		add("other", uint64(i+1))
		flushed(&s)
	}
	const busy = 50 // over three quarters of a table, with the two that are there
	for i := range busy {
		add(fmt.Sprintf("key %c", '0'+i), uint64(i+1))
	}
	before := s.table.Load()
	counts := flushed(&s)
	if len(counts) != busy {
		t.Fatalf("%d keys were flushed", len(counts))
	}
	after := s.table.Load()
	if after == before {
		t.Fatal("the table was not replaced")
	}
	kept := make(map[string]bool)
	for i := range after.slots {
		if slot := &after.slots[i]; slot.state.Load()&ready != 0 {
			kept[string(after.key(slot))] = true
		}
	}
	if len(kept) != 64/2 || kept["idle"] {
		t.Errorf("%d keys were kept, want half a table: %v", len(kept), kept)
	}
	for i := busy - len(kept) + 1; i < busy; i++ {
		if name := fmt.Sprintf("key %c", '0'+i); !kept[name] {
			t.Errorf("%s, one of the busiest, was not kept: %v", name, kept)
		}
	}
	if counts := flushed(&s); len(counts) != 0 {
		t.Errorf("flushed again: %v", counts)
	}
}

// Keys that come again and again stay where they are, as long as there is room
// for some new ones: replacing a table costs more than all of its counts.
func TestSteadyKeysAreLeftInPlace(t *testing.T) {
	var s shard
	s.init(64)
	before := s.table.Load()
	for range 3 * idleFlushes {
		for i := range 48 {
			if !s.add(uint64(i+1)*0x9e3779b97f4a7c15, fmt.Appendf(nil, "key %d", i), 1) {
				t.Fatalf("no room for key %d", i)
			}
		}
		flushed(&s)
	}
	if s.table.Load() != before {
		t.Error("the table was replaced")
	}
}

// Keys too long for the room that is left are refused, and the next flush makes
// room.
func TestLongKeysFillATableToo(t *testing.T) {
	var s shard
	s.init(16)
	long := func(i int) []byte { return fmt.Appendf(nil, "%0900d", i) }
	stored := 0
	for i := range 10 {
		if s.add(uint64(i+1), long(i), 1) {
			stored++
		}
	}
	if stored != 2 {
		t.Errorf("%d keys of 900 bytes were stored in 2 KiB", stored)
	}
	if counts := flushed(&s); len(counts) != stored {
		t.Errorf("%d were flushed", len(counts))
	}
	if !s.add(77, long(77), 1) {
		t.Error("no room after a flush")
	}
}
