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

// targetApart returns the identifier of a target that does not share the counter of id.
func targetApart(c *Cache, id uint64, target func(n int) uint64) uint64 {
	for n := 0; ; n++ {
		if other := target(n); c.generations.target(other) != c.generations.target(id) {
			return other
		}
	}
}

// tagApart returns the identifier of a tag that does not share the counter of id.
func tagApart(c *Cache, id uint64) uint64 {
	for n := 0; ; n++ {
		if other := TagID(fmt.Sprint("another", n)); c.generations.tag(other) != c.generations.tag(id) {
			return other
		}
	}
}

// The place of an identifier differs from cache to cache, so no client can know which targets
// share a counter.
func TestPlacesAreSecret(t *testing.T) {
	a, b := newSite(t, rules.OnHot{Cache: 1}, nil), newSite(t, rules.OnHot{Cache: 1}, nil)
	place := func(s *site, id uint64) int {
		for i := range s.generations.targets {
			if &s.generations.targets[i] == s.generations.target(id) {
				return i
			}
		}
		return -1
	}
	for n := range 3 { // two places are the same by chance once in 2^16
		if id := TagID(fmt.Sprint(n)); place(a, id) != place(b, id) {
			return
		}
	}
	t.Error("identifiers have the same places in two caches")
}

// Invalidations of other targets, as instances with many requests that change something make them,
// leave nearly all answers, and keys are not invalidated by targets.
func TestInvalidationsOfOtherTargets(t *testing.T) {
	g := &newCache(t, Config{}).generations
	stamps := make([]stamp, 1000)
	for i := range stamps {
		stamps[i] = g.stamp(newRequest("GET", fmt.Sprint("/hot/", i)), fmt.Sprint("hot key ", i))
	}
	for i := range 1000 {
		g.target(TargetID("example.com", fmt.Sprint("/orders/", i), "")).Add(1)
	}
	valid := 0
	for i := range stamps {
		if g.valid(&stamps[i]) {
			valid++
		}
	}
	if valid < 950 { // 985 are expected, with a standard deviation of 4
		t.Errorf("%d of 1,000 answers are left", valid)
	}
}
