package onhot

import (
	"net/http"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// discard is a ResponseWriter without costs of its own.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func hitSite(tb testing.TB) (*site, *http.Request, *discard) {
	s := newSite(tb, rules.OnHot{Coalesce: true, Cache: time.Hour, Vary: []string{"header:accept-language"}}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Etag", `"1"`)
		_, _ = w.Write(make([]byte, 2048))
	})
	r := newRequest("GET", "/search?q=phone&page=2", "Accept-Language", "en", "Accept-Encoding", "gzip, deflate, br", "User-Agent", "Mozilla/5.0", "Accept", "*/*")
	w := &discard{make(http.Header)}
	s.serve(w, r)
	if res := s.serve(w, r); res.How != Hit {
		tb.Fatal(res)
	}
	return s, r, w
}

func BenchmarkHit(b *testing.B) {
	s, r, w := hitSite(b)
	defer closeCache(b, s.Cache)
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.Serve(w, r, s.policy, "hot key", nil)
	}
}

func BenchmarkHitParallel(b *testing.B) {
	s, r, _ := hitSite(b)
	defer closeCache(b, s.Cache)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		w := &discard{make(http.Header)}
		for pb.Next() {
			clear(w.header)
			s.Serve(w, r, s.policy, "hot key", nil)
		}
	})
}

func BenchmarkHitNotModified(b *testing.B) {
	s, r, w := hitSite(b)
	defer closeCache(b, s.Cache)
	r.Header.Set("If-None-Match", `"1"`)
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.Serve(w, r, s.policy, "hot key", nil)
	}
}

// The key, alone.
func BenchmarkKey(b *testing.B) {
	s, r, _ := hitSite(b)
	defer closeCache(b, s.Cache)
	b.ReportAllocs()
	for b.Loop() {
		s.policy.key(r, "hot key")
	}
}

// A request that leads, with nothing stored.
func BenchmarkLed(b *testing.B) {
	s, r, w := hitSite(b)
	defer closeCache(b, s.Cache)
	s.policy = NewPolicy(rules.OnHot{Coalesce: true})
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.serve(w, r)
	}
}

// A request that is not shared, without its handler's work.
func BenchmarkAlone(b *testing.B) {
	s, r, w := hitSite(b)
	defer closeCache(b, s.Cache)
	r.Header.Set("Authorization", "Bearer x")
	s.handler = func(http.ResponseWriter, *http.Request) {}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.serve(w, r)
	}
}
