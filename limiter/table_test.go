package limiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A goroutine that found a bucket before it was dropped takes nothing from it:
// what it took would be forgotten.
func TestDroppedBucketIsGone(t *testing.T) {
	k, err := NewKeyed(rules.Rate{N: 5, Per: time.Second}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	k.Take(0, 1, []byte("old"), 2)
	found := k.table.find(1, []byte("old"))
	const full = 400 * time.Millisecond
	k.Take(full, 2, []byte("new"), 1)
	if k.table.find(1, []byte("old")) != nil || k.Stats().Evicted != 1 {
		t.Fatalf("stats %+v: the full bucket was not dropped", k.Stats())
	}
	if d, ok := found.kept.r.take(&found.kept.atomicLine, int64(full), 1); ok {
		t.Errorf("took from a dropped bucket: %+v", d)
	}
	found.kept.r.giveBack(&found.kept.atomicLine, int64(full), &Ask{Kind: Return, N: 1})
	if word := found.kept.word.Load(); word != gone {
		t.Errorf("the dropped bucket came back, with word %d", word)
	}
}

// Of two goroutines that bring in the same key, the second takes from the
// first one's bucket.
func TestKeyEntersOnce(t *testing.T) {
	k, err := NewKeyed(rules.Rate{N: 5, Per: time.Second}, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, remaining := range []int64{1, 0} {
		if d := k.settle(0, 1, []byte("key"), &Ask{N: 1}); !d.Allowed || d.Remaining != remaining {
			t.Errorf("%+v, want %d remaining", d, remaining)
		}
	}
	if d := k.settle(0, 1, []byte("key"), &Ask{N: 1}); d.Allowed || k.Stats().Keys != 1 {
		t.Errorf("%+v with %+v, want a denial and one key", d, k.Stats())
	}
}
