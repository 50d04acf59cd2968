package onhot

import (
	"fmt"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// Identifiers are the same in every process, and in the next version as well.
func TestIDs(t *testing.T) {
	want := TargetID("example.com", "/a b/é", "q=1")
	if want != 0xc5b90eb958f21f8a {
		t.Errorf("the identifier of the target is %#x", want)
	}
	for _, same := range []uint64{
		TargetID("Example.COM", "/a%20b/é", "q=1"), TargetID("example.com:80", "/a%20b/%C3%A9", "q=1"), TargetID("example.com:443", "/%61 b/é", "q=1"),
	} {
		if same != want {
			t.Errorf("%#x, want %#x", same, want)
		}
	}
	other := map[uint64]string{want: "the target", TagID("search GET /?q=1"): "the tag"}
	for _, parts := range [][3]string{
		{"example.com:8080", "/a b/é", "q=1"}, {"example.com", "/a b/É", "q=1"}, {"example.com", "/a b/é", ""}, {"example.com", "/a b/é", "Q=1"},
		{"example.com", "/", ""}, {"example.com", "/100%", ""}, {"example.com", "/100%2", ""}, {"", "example.com", "/"},
	} {
		id := TargetID(parts[0], parts[1], parts[2])
		if other[id] != "" {
			t.Errorf("%q has the identifier of %s", parts, other[id])
		}
		other[id] = fmt.Sprintf("%q", parts)
	}
	if id := TagID("search GET /?q=1"); id != 0x80c609994bfb5608 {
		t.Errorf("the identifier of the tag is %#x", id)
	}
}

// idApart returns an identifier that shares no counter with those of a target and a tag.
func idApart(c *Cache, target, tag uint64, id func(n int) uint64) uint64 {
	g := &c.generations
	for n := 0; ; n++ {
		if place := g.counter(id(n)); place != g.counter(target) && place != g.counter(tag) {
			return id(n)
		}
	}
}

// The place of an identifier differs from cache to cache, so no client can know which targets
// share a counter.
func TestCountersAreSecret(t *testing.T) {
	a, b := newSite(t, rules.OnHot{Cache: 1}, nil), newSite(t, rules.OnHot{Cache: 1}, nil)
	place := func(s *site, id uint64) int {
		for i := range s.generations.counters {
			if &s.generations.counters[i] == s.generations.counter(id) {
				return i
			}
		}
		return -1
	}
	same := 0
	for n := range 20 {
		if id := TagID(fmt.Sprint(n)); place(a, id) == place(b, id) {
			same++
		}
	}
	if same > 3 { // by chance less often than once in 10^11
		t.Errorf("%d of 20 identifiers have the same place in two caches", same)
	}
}
