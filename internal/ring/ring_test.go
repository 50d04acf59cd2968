package ring

import (
	"testing"

	"pgregory.net/rapid"
)

// A ring holds the same counts as a list of its last panes.
func TestRingIsTheSumOfItsPanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 12).Draw(t, "size")
		r := New(size)
		model := make(map[int64]int64)
		newest := int64(Never)
		base := rapid.SampledFrom([]int64{0, -5, 1 << 40, -1 << 40}).Draw(t, "base")
		for range rapid.IntRange(1, 60).Draw(t, "adds") {
			pane := base + rapid.Int64Range(-20, 20).Draw(t, "pane")
			n := rapid.Int64Range(0, 5).Draw(t, "n")
			if n > 0 && pane > newest-size {
				model[pane] += n
				newest = max(newest, pane)
			}
			r.Add(pane, n)
			last := base + rapid.Int64Range(-25, 30).Draw(t, "last")
			panes := rapid.Int64Range(1, size).Draw(t, "panes")
			want := int64(0)
			for p := max(last-panes, newest-size) + 1; p <= last; p++ {
				want += model[p]
			}
			if got := r.Sum(last, panes); got != want {
				t.Fatalf("the %d panes that end with %d hold %d, want %d", panes, last, got, want)
			}
		}
	})
}

// The panes of totals hold more than those of single keys.
func TestRingPaneHoldsTheBytesOfAllKeys(t *testing.T) {
	r := New(3)
	r.Add(1, 1<<32-1)
	r.Add(1, 1<<40)
	if got, want := r.Sum(1, 1), int64(1<<32-1+1<<40); got != want {
		t.Errorf("a pane holds %d, want %d", got, want)
	}
}

func TestSlotIsThePlaceModuloTheSize(t *testing.T) {
	for pane := int64(-50); pane < 50; pane++ {
		if got, next := Slot(pane, 7), Slot(pane+1, 7); got < 0 || got > 6 || next != (got+1)%7 {
			t.Errorf("slot(%d) is %d, and the next %d", pane, got, next)
		}
	}
}
