package limiter

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// busy is the state of a key that never equals a new key's.
type busy struct {
	unlimited
	number int
}

func (busy) FreshAfter(time.Duration) time.Duration { return time.Hour }

func numberOf(n *keyNode) int { return n.kept.state.(busy).number }

// add adds a key the way the callers of a table do.
func add(t *testing.T, table *table, i int) *keyNode {
	t.Helper()
	key := fmt.Append(nil, "key ", i)
	hash := rules.Hash(key)
	s := table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !table.makeRoom(s, 0) {
		t.Fatalf("no room for key %d", i)
	}
	n := newGuarded(hash, key, side{bucketFamily, &rules.Quota{}, busy{number: i}}, nil)
	table.insert(hash, n)
	return n
}

func numberIn(table *table, i int) int {
	key := fmt.Append(nil, "key ", i)
	if n := table.findNode(rules.Hash(key), key); n != nil {
		return numberOf(n)
	}
	return -1
}

// At each size every key is found once, in the heads in use and through its stripe. The number of
// heads suits the number of keys.
func TestATableGrowsWithItsKeys(t *testing.T) {
	for _, room := range []int{1, 5, 64, 300, 1000, 5000} {
		table, err := newTable(room)
		if err != nil {
			t.Fatal(err)
		}
		first := table.used.Load()
		for held := 1; held <= room; held++ {
			add(t, table, held)
			if held > 40 && held%97 != 0 && held != room {
				continue
			}
			for i := 1; i <= held; i++ {
				if got := numberIn(table, i); got != i {
					t.Fatalf("room for %d, %d held: key %d is %d", room, held, i, got)
				}
			}
			used := table.used.Load()
			if want := min(max(first, headsPerKey*uint64(held)), uint64(len(table.heads))); used != want {
				t.Fatalf("room for %d, %d held: %d heads are used, want %d", room, held, used, want)
			}
			met, ofStripes := 0, uint64(0)
			table.each(func(*keyNode) bool { met++; return true })
			for i := range table.stripes {
				s := &table.stripes[i]
				ofStripes += table.usedBy(s)
				for j := range table.usedBy(s) {
					for n := table.headOf(s, j).Load(); n != nil; n = n.next.Load() {
						if table.stripe(uint64(n.hash)) != s {
							t.Fatalf("room for %d, %d held: key %d is in stripe %d", room, held, numberOf(n), i)
						}
					}
				}
			}
			if met != held || ofStripes != used {
				t.Fatalf("room for %d, %d held: %d met, %d heads of stripes", room, held, met, ofStripes)
			}
		}
	}
}

// A walk of all nodes visits each node that was there, once, whatever arrives during the walk. A
// table that could not grow during the walk catches up afterwards.
func TestATableDoesNotGrowWhileItIsWalked(t *testing.T) {
	const known, more = 500, 2000
	table, err := newTable(8000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range known {
		add(t, table, i)
	}
	next, met := known, map[int]int{}
	table.each(func(n *keyNode) bool {
		for range 4 {
			if next < known+more {
				add(t, table, next)
				next++
			}
		}
		met[numberOf(n)]++
		return true
	})
	for i := range known {
		if met[i] != 1 {
			t.Fatalf("key %d was met %d times", i, met[i])
		}
	}
	if next != known+more {
		t.Fatalf("%d keys are in", next)
	}
	for ; next < 3*(known+more); next++ {
		add(t, table, next)
	}
	if used := table.used.Load(); used < headsPerKey*3*(known+more)/2 {
		t.Errorf("%d heads are used for %d keys", used, next)
	}
}

// Keys that are asked while others arrive and the table grows grant exactly their tokens.
func TestTakesAreExactWhileATableGrows(t *testing.T) {
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
