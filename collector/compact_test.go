package collector

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// one returns a collector whose keys are all in its first shard.
func one(t *testing.T, keys int, c Config) (col *Collector, add func(name string, n uint64)) {
	t.Helper()
	c.MaxKeys = keys * shards
	if c.Sink == nil {
		c.Sink = nowhere{}
	}
	col = newCollector(t, c)
	return col, func(name string, n uint64) {
		member := []byte("terms " + name)
		col.Add(rules.Hash(member)&(1<<60-1), member, n)
	}
}

func kept(c *Collector) map[string]bool {
	names := make(map[string]bool)
	t := c.shards[0].table.Load()
	for i := range t.index {
		if entry := t.index[i].Load(); entry != 0 {
			names[string(t.key(&t.slots[entry&t.number-1]))[len("terms "):]] = true
		}
	}
	return names
}

// When a table is replaced, the keys that were busiest recently stay, and keys that have long been
// idle are dropped.
func TestCompactKeepsTheBusiest(t *testing.T) {
	out := newSums()
	c, add := one(t, 64, Config{Sink: out})
	now := time.Unix(1_700_000_000, 0)
	flush := func() { now = now.Add(base.FlushInterval); clear(out.counts); c.Flush(t.Context(), now) }
	add("idle", 1_000)
	flush()
	for i := range idleFlushes {
		add("other", uint64(i+1))
		flush()
	}
	const busy = 58 // over seven eighths of a table, with the two that are there
	for i := range busy {
		add(fmt.Sprint("key ", i), uint64(i+1))
	}
	before := c.shards[0].table.Load()
	flush()
	if len(out.counts) != busy {
		t.Fatalf("%d keys were flushed", len(out.counts))
	}
	if c.shards[0].table.Load() == before {
		t.Fatal("the table was not replaced")
	}
	names := kept(c)
	if len(names) != 64/2 || names["idle"] {
		t.Errorf("%d keys were kept, want half a table: %v", len(names), names)
	}
	for i := busy - len(names) + 1; i < busy; i++ {
		if name := fmt.Sprint("key ", i); !names[name] {
			t.Errorf("%s, one of the busiest, was not kept: %v", name, names)
		}
	}
	flush()
	if len(out.counts) != 0 {
		t.Errorf("flushed again: %v", out.counts)
	}
}

// Recurring keys stay in place as long as there is room for some new ones, since replacing a table
// costs more than all of its counts.
func TestSteadyKeysAreLeftInPlace(t *testing.T) {
	c, add := one(t, 64, Config{})
	before := c.shards[0].table.Load()
	now := time.Unix(1_700_000_000, 0)
	for range 3 * idleFlushes {
		for i := range 48 {
			add(fmt.Sprint("key ", i), 1)
		}
		now = now.Add(base.FlushInterval)
		c.Flush(t.Context(), now)
	}
	if c.shards[0].table.Load() != before {
		t.Error("the table was replaced")
	}
}

// Keys that are too long for the remaining room are refused, and the next flush makes room.
func TestLongKeysFillATableToo(t *testing.T) {
	out := newSums()
	c, add := one(t, 16, Config{Sink: out})
	for i := range 10 {
		add(fmt.Sprintf("%0900d", i), 1)
	}
	c.Flush(t.Context(), time.Unix(1_700_000_000, 0))
	if s := c.Stats(); s.Counts != 2 || s.Dropped.TableFull != 8 {
		t.Errorf("of 10 keys of 900 bytes %d were stored in 2 KiB, %+v", s.Counts, s)
	}
	add(fmt.Sprintf("%0900d", 77), 1)
	c.Flush(t.Context(), time.Unix(1_700_000_001, 0))
	if s := c.Stats(); s.Counts != 3 {
		t.Errorf("no room after a flush: %+v", s)
	}
}

// Keys with held-back counts stay when a table is replaced, with their times, as long as they fit
// in three quarters of it. If there are more, the keys with the most counts stay. The shed counts
// are reported: the most of one key, and the sum.
func TestCompactKeepsWhatIsHeldBack(t *testing.T) {
	for _, test := range []struct{ held, kept int }{{48, 48}, {49, 32}} {
		out := newSums()
		c, add := one(t, 64, Config{Sink: out, Budget: 1, Rules: ruled(over(1<<40, time.Hour))})
		now := time.Unix(1_700_000_000, 0)
		flush := func() { now = now.Add(base.FlushInterval); c.Flush(t.Context(), now) }
		total := int64(0)
		count := func(name string, n int) { add(name, uint64(n)); total += int64(n) }
		for i := range 63 - test.held { // sent, and no longer needed
			count(fmt.Sprint("sent ", i), 1)
			flush()
		}
		for i := range test.held {
			count(fmt.Sprint("held ", i), i+1)
		}
		count("big", 1_000)
		before := c.shards[0].table.Load()
		flush()
		flush() // the flood has ended: one more is sent
		if c.shards[0].table.Load() == before {
			t.Fatal("the table was not replaced")
		}
		shed := int64(test.held - test.kept)
		f := out.flushes[len(out.flushes)-1]
		if f.Unsent != shed || f.Aged != shed*(shed+1)/2 {
			t.Errorf("of %d held: told %+v, want %d unsent", test.held, f, shed)
		}
		s := c.Stats()
		if s.Counts+s.Unsent+s.Aged != total || s.Dropped.Sum() != 0 || s.Aged != f.Aged {
			t.Errorf("added %d: %+v", total, s)
		}
		names := kept(c)
		for i := range test.held {
			if name := fmt.Sprint("held ", i); names[name] != (i >= int(shed)) {
				t.Errorf("of %d held: %s was kept: %v", test.held, name, names[name])
			}
		}
	}
}
