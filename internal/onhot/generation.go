package onhot

import (
	"hash/maphash"
	"net/http"
	"sync/atomic"
)

// generations count invalidations. Targets and tags share a table of counters by their hash, so
// an invalidation takes no memory, needs no index, and may only reach more than it names.
type generations struct {
	seed     maphash.Seed
	flushes  atomic.Uint64
	counters [4096]atomic.Uint64
}

// stamp is the state of the counters of an answer when its handler began.
type stamp struct {
	flushes             uint64
	target, tag         *atomic.Uint64
	targetSeen, tagSeen uint64
}

// stamp returns the stamp of an answer that begins now.
func (g *generations) stamp(r *http.Request, tag string) stamp {
	s := stamp{target: g.target(r.Host, r.URL.EscapedPath(), r.URL.RawQuery), tag: g.tag(tag)}
	s.flushes, s.targetSeen, s.tagSeen = g.flushes.Load(), s.target.Load(), s.tag.Load()
	return s
}

// valid reports whether nothing has invalidated the answer since its handler began.
func (g *generations) valid(s *stamp) bool {
	return s.flushes == g.flushes.Load() && s.targetSeen == s.target.Load() && s.tagSeen == s.tag.Load()
}

func (g *generations) target(host, path, query string) *atomic.Uint64 {
	var h maphash.Hash
	h.SetSeed(g.seed)
	for _, text := range [...]string{host, path, query} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte('\n')
	}
	return &g.counters[h.Sum64()%uint64(len(g.counters))]
}

func (g *generations) tag(tag string) *atomic.Uint64 {
	return &g.counters[maphash.String(g.seed, tag)%uint64(len(g.counters))]
}
