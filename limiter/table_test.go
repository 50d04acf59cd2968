package limiter

import (
	"fmt"
	"strings"
	"sync"
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

// Keys that are asked while others arrive grant exactly their tokens.
func TestTakesAreExactWhileOthersArrive(t *testing.T) {
	const keys, tokens, comers = 64, 50, 20_000
	k, err := NewKeyed(rules.Rate{N: 1, Per: time.Hour}, tokens, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(key string) bool {
		return k.Take(0, rules.Hash([]byte(key)), []byte(key), 1).Allowed
	}
	var wait sync.WaitGroup
	for comer := range 2 {
		wait.Go(func() {
			for i := range comers {
				ask(fmt.Sprint("comer ", comer, " ", i))
			}
		})
	}
	var mu sync.Mutex
	granted := map[string]int{}
	for range 4 {
		wait.Go(func() {
			mine := map[string]int{}
			for i := range 2 * keys * tokens {
				if key := fmt.Sprint("key ", i%keys); ask(key) {
					mine[key]++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for key, n := range mine {
				granted[key] += n
			}
		})
	}
	wait.Wait()
	for key, n := range granted {
		if n != tokens {
			t.Errorf("%s: %d of %d were granted", key, n, tokens)
		}
	}
	if held := k.Stats().Keys; len(granted) != keys || held != keys+2*comers {
		t.Errorf("%d keys were granted something, %d are held", len(granted), held)
	}
}

// A name and a key are distinct from others that read alike, and are found again.
func TestNamedKeys(t *testing.T) {
	long := strings.Repeat("n", longName)
	all := [][2]string{{"a", "bc"}, {"ab", "c"}, {long, "k"}, {long + "k", "k"}, {long[1:], "nk"}, {long[1:], "k"}, {"a", strings.Repeat("b", 40)}}
	for _, a := range all {
		id := named(a[0], a[1])
		if name, key := unnamed(id); name != a[0] || key != a[1] {
			t.Errorf("%q of %q is %q of %q", a[1], a[0], key, name)
		}
		n := newNode(1, []byte(id))
		for _, b := range all {
			if got := n.isNamed(1, b[0], b[1]); got != (a == b) {
				t.Errorf("%q is %q: %v", a, b, got)
			}
			if got := n.hasKey(1, []byte(named(b[0], b[1]))); got != (a == b) {
				t.Errorf("%q has the bytes of %q: %v", a, b, got)
			}
		}
	}
}
