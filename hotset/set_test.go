package hotset

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/hotkeytest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

var hot, hots, cools, text = hotkeytest.Hot, hotkeytest.Hots, hotkeytest.Cools, hotkeytest.Text

// bucket is a fake limiter.
type bucket struct {
	limit int64
	full  time.Duration
}

func keepBucket(h published.Hot, old *bucket, had bool) *bucket {
	if !had {
		return &bucket{limit: h.Limit.N, full: 10 * time.Second}
	}
	old.limit = h.Limit.N
	return old
}

func newBuckets(cfg Config[*bucket]) *Set[*bucket] {
	if cfg.KeepFor == nil {
		cfg.KeepFor = func(b *bucket) time.Duration { return b.full }
	}
	return New(keepBucket, cfg)
}

// replace makes hot the published keys.
func replace[P any](l *Set[P], version string, hot []published.Hot) {
	change := published.Change{Hot: hot}
	for _, h := range l.All() {
		if !slices.ContainsFunc(hot, func(now published.Hot) bool { return now.Key == h.Key }) {
			change.Cool = append(change.Cool, h)
		}
	}
	l.Update(version, change)
}

func find[P any](l *Set[P], h published.Hot) *Entry[P] {
	member := []byte(h.Key.String())
	return l.Lookup(rules.Hash(member), member)
}

func TestSetPayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBuckets(Config[*bucket]{})
		a, b := hot("a", 100, 50), hot("b", 100, 50)
		if find(l, a) != nil {
			t.Fatal("hot from the start")
		}
		replace(l, "x:1", []published.Hot{a, b})
		first := find(l, a)
		if first == nil || first.Hot != a || first.Payload.limit != 50 {
			t.Fatalf("got %+v", first)
		}
		bucketA := first.Payload

		replace(l, "x:2", []published.Hot{a}) // b cools
		if find(l, b) != nil {
			t.Error("b is still hot")
		}
		if find(l, a) != first {
			t.Error("an entry that did not change was made anew")
		}
		changed := a
		changed.Limit.N = 70
		replace(l, "x:3", []published.Hot{changed})
		if e := find(l, a); e.Payload != bucketA || e.Payload.limit != 70 || e.Hot.Limit.N != 70 {
			t.Errorf("another limit: %+v", e)
		}

		replace(l, "x:4", nil)
		time.Sleep(10*time.Second - 1)
		replace(l, "x:5", []published.Hot{a})
		if e := find(l, a); e.Payload != bucketA {
			t.Error("a flap within the time to full granted a fresh bucket")
		}
		replace(l, "x:6", nil)
		time.Sleep(10 * time.Second)
		replace(l, "x:7", []published.Hot{a})
		if e := find(l, a); e.Payload == bucketA {
			t.Error("the bucket was kept beyond its time to full")
		}
		if len(l.cooled) != 0 {
			t.Errorf("%d cooled buckets are held", len(l.cooled))
		}
	})
}

func TestSetCooledIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBuckets(Config[*bucket]{})
		l.maxCooled = 10
		var all []published.Hot
		for i := range 100 {
			all = append(all, hot(text(i), 100, 50))
		}
		replace(l, "", all)
		kept := find(l, all[7]).Payload
		kept.full = time.Hour // the last that could be forgotten
		replace(l, "", nil)
		if len(l.cooled) != 10 {
			t.Errorf("%d are kept, want 10", len(l.cooled))
		}
		replace(l, "", all[7:8])
		if find(l, all[7]).Payload != kept {
			t.Error("forgot the one that takes longest to fill")
		}
	})
}

func TestSetUpdateAndHook(t *testing.T) {
	var swaps []string
	var l *Set[*bucket]
	l = newBuckets(Config[*bucket]{OnSwap: func(version string, now []published.Hot) {
		for _, h := range now {
			if find(l, h) == nil {
				t.Errorf("%s: told of %v before it is in force", version, h.Key)
			}
		}
		swaps = append(swaps, fmt.Sprint(version, len(now)))
	}})
	l.UpdateFleet(published.Fleet{Instances: 1}) // without OnFleet there is no one to call
	replace(l, "x:1", []published.Hot{hot("a", 100, 50), hot("b", 300, 50)})
	l.Update("x:2", published.Change{Hot: []published.Hot{hot("c", 200, 50)}, Cool: []published.Hot{hot("a", 1, 50)}})
	l.Update("x:3", hots(hot("b", 150, 60)))
	all := l.All()
	if len(all) != 2 || all[0].Text != "c" || all[1].Text != "b" || all[1].Limit.N != 60 {
		t.Errorf("all: %+v", all)
	}
	if want := []string{"x:12", "x:22", "x:32"}; !slices.Equal(swaps, want) {
		t.Errorf("swaps %q, want %q", swaps, want)
	}
}

// Marked keys are in force along with published ones. A key that is both has one bucket, whichever
// state comes and goes first.
func TestSetMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		swaps := 0
		l := newBuckets(Config[*bucket]{OnSwap: func(string, []published.Hot) { swaps++ }})
		a, b := hot("a", 100, 50), hot("b", 100, 60)
		in := func(h published.Hot, local bool) *Entry[*bucket] {
			t.Helper()
			h.Local = local
			e := find(l, h)
			if e == nil || e.Hot != h {
				t.Fatalf("in force: %+v, want %+v", e, h)
			}
			return e
		}
		l.Mark(a)
		own := in(a, true).Payload
		l.Mark(a)
		if swaps != 1 {
			t.Errorf("%d snapshots, want one: nothing changed", swaps)
		}
		listed := a
		listed.Rate = 400
		l.Update("x:1", hots(listed, b)) // the aggregator agrees
		if in(listed, false).Payload != own {
			t.Error("a fresh bucket when the mark was published")
		}
		in(b, false)
		replace(l, "x:2", []published.Hot{b})
		if in(a, true).Payload != own {
			t.Error("a fresh bucket when the mark was in force again")
		}
		l.Update("x:3", published.Change{Cool: []published.Hot{{Key: a.Key}}}) // it is not listed
		in(a, true)
		l.Update("x:4", hots(listed))
		l.Unmark(a.Key)
		in(listed, false)
		l.Unmark(a.Key)
		l.Update("x:5", cools(listed))
		if find(l, a) != nil {
			t.Error("hot, and neither published nor marked")
		}
		l.Mark(a)
		if in(a, true).Payload != own {
			t.Error("a fresh bucket within its time to full")
		}
		l.Unmark(a.Key)
		if find(l, a) != nil || len(l.All()) != 1 {
			t.Errorf("hot: %v, want b", l.All())
		}
	})
}

func TestSetMarksAreBounded(t *testing.T) {
	l := newBuckets(Config[*bucket]{})
	l.maxMarks = 10
	for range 2 {
		for i := range 12 {
			l.Mark(hot(text(i), 100, 50))
		}
	}
	if refused := l.RefusedMarks(); refused != 4 || len(l.marks) != 10 || len(l.All()) != 10 {
		t.Errorf("%d marked, %d refused, %d hot", len(l.marks), refused, len(l.All()))
	}
	l.Unmark(hot(text(3), 0, 1).Key)
	l.Mark(hot(text(11), 100, 50))
	if find(l, hot(text(11), 0, 1)) == nil {
		t.Error("no room, though one was unmarked")
	}
}

// Keys are published, changed, marked and unmarked in any order. The published keys and the other
// marked ones are in force. A bucket stays with its key.
func TestSetAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var swapped map[string]published.Hot
		l := newBuckets(Config[*bucket]{OnSwap: func(_ string, hot []published.Hot) {
			swapped = make(map[string]published.Hot)
			for _, h := range hot {
				swapped[h.Text] = h
			}
		}})
		l.maxMarks = 3
		listed, marks, buckets := map[string]published.Hot{}, map[string]published.Hot{}, map[string]*bucket{}
		texts := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		key := func() published.Hot { return hot(texts.Draw(t, "key"), rapid.Float64Range(1, 9).Draw(t, "rate"), 50) }
		steps := map[string]func(*rapid.T){
			"replace": func(t *rapid.T) {
				var hot []published.Hot
				clear(listed)
				for range rapid.IntRange(0, 4).Draw(t, "keys") {
					if h := key(); listed[h.Text] == (published.Hot{}) {
						listed[h.Text] = h
						hot = append(hot, h)
					}
				}
				replace(l, "", hot)
			},
			"update": func(t *rapid.T) {
				h, c := key(), key()
				listed[h.Text] = h
				delete(listed, c.Text)
				l.Update("", published.Change{Hot: []published.Hot{h}, Cool: []published.Hot{c}})
			},
			"mark": func(t *rapid.T) {
				h := key()
				l.Mark(h)
				if _, ok := marks[h.Text]; ok || len(marks) < 3 {
					h.Local = true
					marks[h.Text] = h
				}
			},
			"unmark": func(t *rapid.T) {
				h := key()
				l.Unmark(h.Key)
				delete(marks, h.Text)
			},
			"": func(t *rapid.T) {
				want := maps.Clone(marks)
				maps.Copy(want, listed)
				got := make(map[string]published.Hot)
				for _, h := range l.All() {
					got[h.Text] = h
					e := find(l, h)
					if old := buckets[h.Text]; old != nil && old != e.Payload {
						t.Fatalf("%s has another bucket", h.Text)
					}
					buckets[h.Text] = e.Payload
				}
				if !maps.Equal(got, want) || swapped != nil && !maps.Equal(swapped, want) {
					t.Fatalf("in force %v, told %v, want %v", got, swapped, want)
				}
			},
		}
		t.Repeat(steps)
	})
}

// Equal hashes hide no key: members are compared, whatever the hash function.
func TestTableFindsAllDespiteCollisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.Uint64Range(1, 8).Draw(t, "different hashes")
		hash := func(member []byte) uint64 { return rules.Hash(member)%bits + 1 }
		members := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-d]{1,4}`), 0, 40, rapid.ID).Draw(t, "members")
		entries := make(map[string]*Entry[int])
		for i, m := range members {
			entries[m] = &Entry[int]{Payload: i, member: m, hash: hash([]byte(m))}
		}
		table := newSnapshot(entries)
		for m, want := range entries {
			if e := table.lookup(hash([]byte(m)), []byte(m)); e != want {
				t.Fatalf("%q: found %+v, want %+v", m, e, want)
			}
		}
		stranger := rapid.StringMatching(`[a-e]{1,5}`).Draw(t, "stranger")
		if e := table.lookup(hash([]byte(stranger)), []byte(stranger)); e != entries[stranger] {
			t.Fatalf("%q: found %+v", stranger, e)
		}
	})
}

// Readers always see one whole snapshot: both keys of a pair or neither, and never a key under
// another's name.
func TestLookupDuringSwaps(t *testing.T) {
	l := newBuckets(Config[*bucket]{})
	const pairs = 20
	var swapping sync.WaitGroup
	done := make(chan struct{})
	swapping.Go(func() {
		defer close(done)
		for i := range 3000 {
			h := hot(text(i%pairs), float64(i), int64(i%7+1))
			replace(l, "", []published.Hot{h, hot(text(pairs+i%pairs), 1, 1)})
		}
	})
	for range 2 {
		swapping.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				want := hot(text(i%pairs), 0, 1)
				if e := find(l, want); e != nil && e.Hot.Key != want.Key {
					t.Errorf("looked for %v, found %v", want.Key, e.Hot.Key)
					return
				}
				if all := l.All(); len(all) != 0 && len(all) != 2 {
					t.Errorf("half a snapshot: %v", all)
					return
				}
			}
		})
	}
	swapping.Wait()
}

func TestLookupDoesNotAllocate(t *testing.T) {
	l := newBuckets(Config[*bucket]{})
	replace(l, "", []published.Hot{hot("a", 1, 1)})
	hit, miss := []byte(hot("a", 1, 1).Key.String()), []byte("r b")
	hitHash, missHash := rules.Hash(hit), rules.Hash(miss)
	if n := testing.AllocsPerRun(1000, func() {
		if l.Lookup(hitHash, hit) == nil || l.Lookup(missHash, miss) != nil {
			t.Fatal("wrong answer")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, keys := range []int{0, 10, 1000} {
		l := newBuckets(Config[*bucket]{})
		var all []published.Hot
		for i := range keys {
			all = append(all, hot(text(i), 100, 50))
		}
		replace(l, "", all)
		run := func(member string) func(*testing.B) {
			return func(b *testing.B) {
				m := []byte(member)
				hash := rules.Hash(m)
				b.ReportAllocs()
				for b.Loop() {
					l.Lookup(hash, m)
				}
			}
		}
		b.Run(fmt.Sprintf("miss/%d", keys), run("search-terms GET /search?q=none"))
		if keys > 0 {
			b.Run(fmt.Sprintf("hit/%d", keys), run(all[keys/2].Key.String()))
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	l := newBuckets(Config[*bucket]{})
	var all []published.Hot
	for i := range 1000 {
		all = append(all, hot(text(i), 100, 50))
	}
	l.Update("", published.Change{Hot: all})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		all[i%1000].Low++ // one entry differs
		l.Update("", published.Change{Hot: all[i%1000 : i%1000+1]})
	}
}
