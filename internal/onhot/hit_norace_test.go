//go:build !race

package onhot

import "testing"

// A hit allocates its key, and nothing else.
func TestHitAllocatesItsKey(t *testing.T) {
	s, r, w := hitSite(t)
	defer closeCache(t, s.Cache)
	for name, prepare := range map[string]func(){
		"200":      func() {},
		"304":      func() { r.Header.Set("If-None-Match", `"1"`) },
		"HEAD":     func() { r.Method = "HEAD" },
		"demanded": func() { r.Header.Set("Cache-Control", "max-age=60") },
	} {
		prepare()
		n := testing.AllocsPerRun(500, func() {
			clear(w.header)
			if res := s.Serve(w, r, s.policy, "hot key", nil); res.How != Hit {
				t.Fatal(res)
			}
		})
		if n > 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
