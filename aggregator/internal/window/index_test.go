package window

import (
	"testing"

	"pgregory.net/rapid"
)

// The index holds exactly the entries that were put and not removed. A search from an entry's home
// finds it before a free place, even if hashes are equal, collide or wrap around the end.
func TestIndexHoldsWhatAMapHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 300).Draw(t, "most")
		x := newIndex(most)
		hashes := rapid.Uint64Range(1, 400).Draw(t, "hashes")
		hash := func(i uint32) uint64 { return uint64(i) * 7919 % hashes * (1<<32/hashes + 1) }
		model := make(map[uint32]bool)
		for range rapid.IntRange(1, 600).Draw(t, "steps") {
			i := uint32(rapid.IntRange(1, most).Draw(t, "entry"))
			if model[i] {
				x.remove(hash(i), i)
				delete(model, i)
			} else {
				x.add(hash(i), i)
				model[i] = true
			}
		}
		if x.n != len(model) || len(x.places) > placesFor(most) {
			t.Fatalf("the index has %d entries in %d places, want %d in at most %d", x.n, len(x.places), len(model), placesFor(most))
		}
		for i := uint32(1); i <= uint32(most); i++ {
			found := 0
			for at := x.home(uint32(hash(i))); x.places[at] != 0; at = (at + 1) % len(x.places) {
				if x.places[at] == uint64(uint32(hash(i)))<<32|uint64(i) {
					found++
				}
			}
			if found > 1 || (found == 1) != model[i] {
				t.Fatalf("entry %d is met %d times, want it %v", i, found, model[i])
			}
		}
	})
}
