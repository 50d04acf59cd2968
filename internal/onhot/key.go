package onhot

import (
	"encoding/binary"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// maxKey is the length of the longest key in bytes. Requests with a longer one are not shared, so
// long targets take little memory.
const maxKey = 8 << 10

// keyBuffers hold keys while they are made.
var keyBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// key returns the identity of a request's answer: everything that the leader's handler sees
// (leader.go), and nothing else. Each part has its length before it, so no two requests with
// different parts have the same key. The method is not in it, since every leader uses GET.
func (p *Policy) key(r *http.Request, tag string) (key string, ok bool) {
	buffer := keyBuffers.Get().(*[]byte)
	b := binary.AppendUvarint((*buffer)[:0], p.id)
	b = appendText(b, tag)
	b = binary.AppendUvarint(b, uint64(uintptr(unsafe.Pointer(serverOf(r)))))
	b = append(b, flag(r.TLS != nil)|flag(r.URL.ForceQuery)<<1|flag(r.URL.OmitHost)<<2)
	u := r.URL
	for _, text := range [...]string{r.Host, r.RequestURI, u.Scheme, u.Opaque, u.Host, u.Path, u.RawPath, u.RawQuery, u.Fragment, u.RawFragment, r.Pattern} {
		b = appendText(b, text)
	}
	for name := range wildcards(r.Pattern) {
		b = appendText(b, r.PathValue(name))
	}
	b = appendText(b, acceptedCodings(r.Header["Accept-Encoding"]))
	for _, name := range p.headers {
		values := r.Header[name]
		b = binary.AppendUvarint(b, uint64(len(values)))
		for _, value := range values {
			b = appendText(b, value)
		}
	}
	if len(p.cookies) > 0 {
		b = appendText(b, p.namedCookies(r.Header["Cookie"]))
	}
	if ok = len(b) <= maxKey; ok {
		key, *buffer = string(b), b
		keyBuffers.Put(buffer)
	}
	return key, ok
}

// serverOf returns the server of a request, or nil if there is none. Two servers of a process may
// have different handlers for one target.
func serverOf(r *http.Request) *http.Server {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	return server
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// wildcards calls yield with the names of a pattern's wildcards. Their values are copied one by
// one, since [http.Request.SetPathValue] may have set others, from anything.
func wildcards(pattern string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			_, rest, found := strings.Cut(pattern, "{")
			if !found {
				return
			}
			name, after, found := strings.Cut(rest, "}")
			name = strings.TrimSuffix(name, "...")
			if !found || name != "$" && !yield(name) {
				return
			}
			pattern = after
		}
	}
}

// namedCookies returns the Cookie header that the handler sees: the policy's cookies alone, in
// their order and byte for byte.
func (p *Policy) namedCookies(values []string) string {
	var kept []string
	for _, value := range values {
		for pair := range strings.SplitSeq(value, ";") {
			pair = textproto.TrimString(pair)
			name, _, _ := strings.Cut(pair, "=")
			if slices.Contains(p.cookies, textproto.TrimString(name)) { // as net/http reads it
				kept = append(kept, pair)
			}
		}
	}
	return strings.Join(kept, "; ")
}
