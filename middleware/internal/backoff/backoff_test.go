package backoff

import (
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// If more clients come than fit into Max, the rest is spread over all of it.
func TestBackoffIsBounded(t *testing.T) {
	var b Lines
	const n = 10_000
	var thirds [3]int
	for range n {
		got := b.Next(7, time.Hour+time.Millisecond, 90*time.Second, time.Second) - 90*time.Second
		if got < 0 || got > Max || got%time.Second != 0 {
			t.Fatalf("%v", got)
		}
		thirds[min(2, got*3/Max)]++
	}
	for _, m := range thirds {
		if m < n/4 {
			t.Errorf("by thirds of the time: %d", thirds)
		}
	}
	if got := b.Next(7, time.Hour+time.Millisecond, math.MaxInt64, time.Second); got != math.MaxInt64/time.Second*time.Second {
		t.Errorf("for ever: %v", got)
	}
}

// Each key has its own line, even if many are in use. A line that has emptied is free for the next
// key.
func TestBackoffOfManyKeys(t *testing.T) {
	var b Lines
	const keys = 1000
	late := 0
	for round := range 3 {
		now := time.Duration(round) * time.Hour
		for range 5 {
			for key := range uint64(keys) {
				b.Next(rules.Hash(strconv.AppendUint(nil, key+uint64(round)*keys, 10)), now, 1, time.Second)
			}
		}
		for key := range uint64(keys) {
			if b.Next(rules.Hash(strconv.AppendUint(nil, key+uint64(round)*keys, 10)), now, 1, time.Second) != 6*time.Second {
				late++
			}
		}
	}
	if late > 3*keys/50 {
		t.Errorf("%d of %d keys have lost their place", late, 3*keys)
	}
}

// Concurrent goroutines never get the same place.
func TestBackoffByManyAtOnce(t *testing.T) {
	var b Lines
	var wait sync.WaitGroup
	var mu sync.Mutex
	comes := make(map[time.Duration]int)
	for range 8 {
		wait.Go(func() {
			for range 1000 {
				at := b.Next(7, time.Hour, 1, 10*time.Millisecond)
				mu.Lock()
				comes[at]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for at := range 80 {
		if got := comes[time.Duration(at+1)*time.Second]; got != 100 {
			t.Errorf("%d come after %d s, want 100", got, at+1)
		}
	}
}
