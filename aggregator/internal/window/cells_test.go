package window

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// In each window that ends within the kept panes, a key's bound is at least its own counts. It is
// at most the counts of the whole cell within a span of the window's ends.
func TestCellsBoundWhatTheyHide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		panes := rapid.Int64Range(10, 120).Draw(t, "panes")
		ring := panes + rapid.Int64Range(1, 40).Draw(t, "grace")
		c := newCells(panes, ring, rapid.Int64Range(1, 10*cellSize).Draw(t, "budget"))
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		type added struct {
			hash    uint64
			pane, n int64
		}
		var all []added
		now := rapid.SampledFrom([]int64{0, -40, 1 << 33, -1 << 33}).Draw(t, "start")
		for range rapid.IntRange(1, 200).Draw(t, "additions") {
			now += int64(rnd.IntN(3)) * int64(rnd.IntN(1+rnd.IntN(int(ring))))
			a := added{rnd.Uint64N(8) << 29, now - int64(rnd.IntN(int(ring))), int64(rnd.IntN(5) + 1)}
			all = append(all, a)
			c.add(a.hash, a.pane, a.n)
		}
		worst := int64(0)
		for end := now - (ring - panes); end <= now+2; end++ {
			for hash := range uint64(8) {
				hash <<= 29
				own, near := int64(0), int64(0)
				for _, a := range all {
					if a.hash == hash && a.pane <= end && a.pane > end-panes {
						own += a.n
					}
					if c.cellOf(a.hash) == c.cellOf(hash) && a.pane < end+c.span && a.pane > end-panes-c.span {
						near += a.n
					}
				}
				got := c.bound(hash, end, panes)
				if got < own || got > near {
					t.Fatalf("the bound of %x in the window to %d is %d, want %d to %d", hash, end, got, own, near)
				}
				if end == now {
					worst = max(worst, got)
				}
			}
		}
		if got := c.worst(now); got < worst {
			t.Fatalf("the worst bound is %d, and one is %d", got, worst)
		}
		if len(c.all) > 1 && int64(len(c.all))*cellSize > 10*cellSize {
			t.Fatalf("%d cells", len(c.all))
		}
	})
}

// The bar is the mean of the cells plus the spread that chance adds. Only a key that is busier
// than the bar stands out.
func TestCellsStand(t *testing.T) {
	c := newCells(10, 31, 100*cellSize)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 { // 100 in each cell
		c.add(rnd.Uint64(), 5, 1)
	}
	if c.bar < 110 || c.bar > 130 {
		t.Errorf("the bar is %v, want the mean of 100 and twice the deviation of 10", c.bar)
	}
	busy := uint64(77)
	for range 100 {
		c.add(busy, 5, 1)
	}
	if !c.standsOut(busy, 5, 1, 20) || c.standsOut(busy, 5, 1, 200) {
		t.Error("a key of 100 does not stand out from one of 20, or does from one of 200")
	}
	out := 0
	for range 1000 {
		if c.standsOut(rnd.Uint64(), 5, 1, 0) {
			out++
		}
	}
	if out > 100 {
		t.Errorf("%d of 1,000 keys that never came stand out", out)
	}
}
