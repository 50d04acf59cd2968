package collector

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// A closed table accepts no counts. Each count is either among those that close found, or its adder
// has to use another table.
func TestTableCountsNothingAfterClose(t *testing.T) {
	for range 200 {
		table := newTable(64, never)
		var in, elsewhere atomic.Int64
		var adders sync.WaitGroup
		for a := range 4 {
			adders.Go(func() {
				for i := range 100 {
					key := fmt.Append(nil, "key ", i%(10+a))
					if table.add(uint64(i%(10+a)+1), key, 1)&^filling == added {
						in.Add(1)
					} else {
						elsewhere.Add(1)
					}
				}
			})
		}
		found := int64(0)
		table.drain(&table.dirty, func(_ int, n uint64) { found += int64(n) })
		for i := range table.slots {
			found += int64(table.slots[i].close())
		}
		adders.Wait()
		if found != in.Load() || in.Load()+elsewhere.Load() != 400 {
			t.Fatalf("found %d, added %d, sent elsewhere %d", found, in.Load(), elsewhere.Load())
		}
	}
}

func TestTableIsFullAtItsLimit(t *testing.T) {
	table := newTable(10, never)
	for i := range 20 {
		want := added
		if i >= 10 {
			want = full
		}
		if got := table.add(uint64(i+1), fmt.Append(nil, "k", i), 1) &^ filling; got != want {
			t.Errorf("key %d: %v, want %v", i, got, want)
		}
	}
	if got := table.add(3, []byte("k2"), 1); got != added {
		t.Error("a known key is not counted in a full table")
	}
}

// However many goroutines add a new key at the same time, it has one slot with all its counts.
func TestTableHasOneSlotForAKey(t *testing.T) {
	const keys, adders = 50, 4
	for range 100 {
		table := newTable(adders*keys, never)
		start := make(chan struct{})
		var done sync.WaitGroup
		for range adders {
			done.Go(func() {
				<-start
				for i := range keys {
					// All keys have one of two hashes, so they share their places.
					if out := table.add(uint64(1+i%2), fmt.Append(nil, "key ", i, " of some length, and more"[:i%26]), 1); out&full != 0 {
						t.Errorf("key %d: %v", i, out)
					}
				}
			})
		}
		close(start)
		done.Wait()
		counted, total := 0, uint64(0)
		table.drain(&table.dirty, func(slot int, n uint64) { counted, total = counted+1, total+n })
		if counted != keys || total != adders*keys {
			t.Fatalf("%d slots with %d counts", counted, total)
		}
		for i := range keys {
			if table.findSlot(uint64(1+i%2), fmt.Append(nil, "key ", i, " of some length, and more"[:i%26])) < 0 {
				t.Fatalf("key %d is not found", i)
			}
		}
		if table.findSlot(1, []byte("key")) >= 0 {
			t.Fatal("a key is found that was never there")
		}
	}
}
