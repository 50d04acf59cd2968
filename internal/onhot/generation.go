package onhot

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// generations count invalidations. Targets share a table of counters by their ids, and so do tags.
// So an invalidation takes no memory, needs no index, and may only reach more than it names. The
// table of targets is large, since instances invalidate those of all requests that change
// something at the paths of a rule, most of which have no answer here: a thousand a second hit that
// of an answer once a minute. The place of an id is secret. Otherwise a client could choose a target
// that shares the counter of another, and keep invalidating that one.
type generations struct {
	seed    maphash.Seed
	flushes atomic.Uint64
	targets [1 << 16]atomic.Uint32
	tags    [1 << 10]atomic.Uint32
}

// stamp is the state of the counters of an answer when its handler began.
type stamp struct {
	flushes             uint64
	target, tag         *atomic.Uint32
	targetSeen, tagSeen uint32
}

// stamp returns the stamp of an answer that begins now.
func (g *generations) stamp(r *http.Request, tag string) stamp {
	s := stamp{target: g.target(TargetID(r.Host, r.URL.EscapedPath(), r.URL.RawQuery)), tag: g.tag(TagID(tag))}
	s.flushes, s.targetSeen, s.tagSeen = g.flushes.Load(), s.target.Load(), s.tag.Load()
	return s
}

// valid reports whether nothing has invalidated the answer since its handler began.
func (g *generations) valid(s *stamp) bool {
	return s.flushes == g.flushes.Load() && s.targetSeen == s.target.Load() && s.tagSeen == s.tag.Load()
}

func (g *generations) target(id uint64) *atomic.Uint32 {
	return &g.targets[g.place(id)%uint64(len(g.targets))]
}

func (g *generations) tag(id uint64) *atomic.Uint32 { return &g.tags[g.place(id)%uint64(len(g.tags))] }

func (g *generations) place(id uint64) uint64 { return maphash.Comparable(g.seed, id) }

// TargetID returns an identifier of a target that is the same in every process and does not
// reveal the target. Each part of the target is as in a request: path is escaped and query raw.
// Hosts that differ in case or by the default port, and paths that differ in their escapes only,
// have the same identifier.
func TargetID(host, path, query string) uint64 {
	host = strings.ToLower(host)
	host = strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":443")
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	var buffer [512]byte
	b := append(append(append(buffer[:0], host...), '\n'), path...)
	return textID(append(append(b, '\n'), query...))
}

// TagID returns an identifier of a tag that is the same in every process and does not reveal the
// tag.
func TagID(tag string) uint64 {
	var buffer [512]byte
	return textID(append(buffer[:0], tag...))
}

// textID returns an identifier that no one can give another text on purpose.
func textID(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}
