package adapter

import (
	"sync"

	"github.com/hotparam/hotparam/middleware"
)

// Templates are the templates of a router whose requests are not those of net/http: its
// adapter calls [middleware.Guard.Begin] with what Resolve returns. They are safe for
// concurrent use.
type Templates struct {
	known   templates
	buffers sync.Pool // of *paths
}

// NewTemplates returns templates of a router. It calls parse once for each.
func NewTemplates(parse func(template string) []Part) *Templates {
	return &Templates{known: newTemplates(parse), buffers: sync.Pool{New: func() any { return new(paths) }}}
}

// Resolve returns the pattern by which rules know a request, and its path as the router has
// it: that is sent, the escaped path that the client sent, or another that has the router's
// values. Neither refers to the strings of route.
func (t *Templates) Resolve(method, sent string, route Route) (pattern, path string) {
	b := t.buffers.Get().(*paths)
	defer t.buffers.Put(b)
	pattern, other := t.known.get(route.Template).resolve(b, method, sent, &route)
	if other == nil {
		return pattern, sent
	}
	return pattern, string(other)
}

// paths are buffers for two forms of a path.
type paths struct{ sent, routed []byte }

// resolve returns the pattern of a request, and its path if the router has another than the
// one that was sent: it may have removed slashes or an extension, or have taken "%2F" for
// "/". Otherwise such spellings of a path would have no parameters, and evade limits by them.
// The path is in the buffers. A nil template is that of no route.
func (t *template) resolve(b *paths, method, sent string, route *Route) (pattern string, path []byte) {
	if t == nil || len(route.Values) != t.params {
		return middleware.Unrouted, nil
	}
	pattern = t.pattern
	if route.Method != "" && route.Method != method {
		pattern = route.Method + " " + t.pattern
	}
	var same bool
	if b.sent, b.routed, same = t.appendPath(b.sent[:0], b.routed[:0], sent, route.Values); same {
		return pattern, nil
	}
	return pattern, b.routed
}
