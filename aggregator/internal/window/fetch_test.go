package window

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Reading ahead changes nothing, whatever the window holds: no entry, entries with and without
// blocks, keys that share cells.
func TestFetchChangesNothing(t *testing.T) {
	shape := rules.NewWindow(time.Second)
	ahead, plain := New(shape, 20, 64<<10), New(shape, 20, 64<<10)
	rnd := rand.New(rand.NewPCG(1, 1))
	hashes := make([]uint64, FetchMost+7)
	for pane := range int64(60) {
		for range 40 {
			n := rnd.IntN(len(hashes) + 1)
			for i := range hashes[:n] {
				hashes[i] = rules.Hash(fmt.Append(nil, "k", rnd.IntN(1+rnd.IntN(5000))))
			}
			ahead.Fetch(hashes[:n], 0)
			ahead.Fetch(hashes[:n], 1<<30)
			for _, h := range hashes[:n] {
				i, low, end := ahead.Add(h, nil, pane, 1)
				if j, wantLow, wantEnd := plain.Add(h, nil, pane, 1); i != j || low != wantLow || end != wantEnd {
					t.Fatalf("pane %d: entry %d with %d to pane %d, want %d, %d, %d", pane, i, low, end, j, wantLow, wantEnd)
				}
			}
		}
	}
	if ahead.Evicted() == 0 || ahead.Evicted() != plain.Evicted() || ahead.Used() != plain.Used() {
		t.Errorf("%d evicted and %d bytes, want %d and %d", ahead.Evicted(), ahead.Used(), plain.Evicted(), plain.Used())
	}
}
