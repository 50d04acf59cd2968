package limiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A goroutine that found a bucket before it was dropped takes nothing from it, since the take would
// be forgotten.
func TestDroppedBucketIsGone(t *testing.T) {
	k, err := NewKeyed(rules.Rate{N: 5, Per: time.Second}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	k.Take(0, 1, []byte("old"), 2)
	found := k.table.findNode(1, []byte("old"))
	const full = 400 * time.Millisecond
	k.Take(full, 2, []byte("new"), 1)
	if k.table.findNode(1, []byte("old")) != nil || k.Stats().Evicted != 1 {
		t.Fatalf("stats %+v: the full bucket was not dropped", k.Stats())
	}
	var r Result
	if kept := &found.kept; kept.lent.do(kept.lent.plan, int64(full), 0, &Request{N: 1}, &r) {
		t.Errorf("took from a dropped bucket: %+v", r)
	}
	rule := k.rule.Load()
	if f, err := found.kept.do(full, rule.quota, maker{algorithms: rule}, &Request{N: 1}, &r); f != keyDropped || err != nil {
		t.Errorf("asked a dropped bucket: %v, %v: %+v", f, err, r)
	}
}

// If two goroutines bring in the same key, the second takes from the first one's bucket.
func TestKeyEntersOnce(t *testing.T) {
	k, err := NewKeyed(rules.Rate{N: 5, Per: time.Second}, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	enter := func() Result {
		t.Helper()
		rule := k.rule.Load()
		r, err := k.table.enter(0, 1, rule.quota, maker{algorithms: rule, key: []byte("key")}, &Request{N: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, remaining := range []int64{1, 0} {
		if d := enter(); !d.Allowed || d.Remaining != remaining {
			t.Errorf("%+v, want %d remaining", d, remaining)
		}
	}
	if d := enter(); d.Allowed || k.Stats().Keys != 1 {
		t.Errorf("%+v with %+v, want a denial and one key", d, k.Stats())
	}
}
