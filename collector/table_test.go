package collector

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// A closed table takes nothing more: each count is either in what close found,
// or sends its adder elsewhere.
func TestTableCountsNothingAfterClose(t *testing.T) {
	for range 200 {
		table := newTable(64)
		var in, elsewhere atomic.Int64
		var adders sync.WaitGroup
		for a := range 4 {
			adders.Go(func() {
				for i := range 100 {
					key := fmt.Append(nil, "key ", i%(10+a))
					if table.add(uint64(i%(10+a)+1), key, 1) == added {
						in.Add(1)
					} else {
						elsewhere.Add(1)
					}
				}
			})
		}
		found := int64(0)
		table.take(func(_ int, n uint64) { found += int64(n) })
		for i := range table.slots {
			if n, ok := table.slots[i].close(); ok {
				found += int64(n)
			}
		}
		adders.Wait()
		if found != in.Load() || in.Load()+elsewhere.Load() != 400 {
			t.Fatalf("found %d, added %d, sent elsewhere %d", found, in.Load(), elsewhere.Load())
		}
	}
}

func TestTableIsFullAtItsLimit(t *testing.T) {
	table := newTable(10)
	for i := range 20 {
		want := added
		if i >= 10 {
			want = full
		}
		if got := table.add(uint64(i+1), fmt.Append(nil, "k", i), 1); got != want {
			t.Errorf("key %d: %v, want %v", i, got, want)
		}
	}
	if got := table.add(3, []byte("k2"), 1); got != added {
		t.Error("a known key is not counted in a full table")
	}
}
