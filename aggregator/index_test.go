package aggregator

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
)

// The index finds exactly the entries that are in it, whatever was taken out,
// and even where hashes are equal or run into each other.
func TestIndexFindsWhatAMapHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWindow(hotparam.NewWindow(time.Second), 1, 1<<20)
		hashes := rapid.Uint64Range(1, 400).Draw(t, "hashes")
		const keys = 300
		text := func(k int) []byte { return fmt.Append(nil, "key", k) }
		hash := func(k int) uint64 { return uint64(k)*7919%hashes - 1 } // wraps around the table's end
		model := make(map[int]int32)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			k := rapid.IntRange(0, keys-1).Draw(t, "key")
			if i, ok := model[k]; ok {
				w.evict(i)
				delete(model, k)
			} else {
				model[k] = w.insert(hash(k), text(k))
			}
		}
		for k := range keys {
			want, ok := model[k]
			if !ok {
				want = -1
			}
			if got := w.find(hash(k), text(k)); got != want {
				t.Fatalf("key %d is at %d, want %d", k, got, want)
			}
		}
		if w.index.n != len(model) || w.live != len(model) {
			t.Fatalf("index has %d, live are %d, want %d", w.index.n, w.live, len(model))
		}
	})
}
