package adapter

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam/middleware"
)

// maxTemplates bounds the number of templates that are kept. A router has some hundred.
const maxTemplates = 4096

// Templates keeps the templates of a router. The adapter of a router with requests other than
// net/http's passes the results of Resolve to [middleware.Guard.Begin]. Templates are safe for
// concurrent use.
type Templates struct {
	parse   func(string) []Part
	known   atomic.Pointer[map[string]*template] // read without a lock
	mu      sync.Mutex                           // held to add
	buffers sync.Pool                            // of *paths
}

// NewTemplates returns the templates of a router. It calls parse once for each template.
func NewTemplates(parse func(template string) []Part) *Templates {
	t := &Templates{parse: parse, buffers: sync.Pool{New: func() any { return new(paths) }}}
	t.known.Store(new(map[string]*template))
	return t
}

// Resolve returns the pattern of a request, as rules name it, and the request's path. The path
// is sent, the escaped path from the client, unless the router's values differ from it. The
// results do not refer to the strings of route.
func (t *Templates) Resolve(method, sent string, route Route) (pattern, path string) {
	b := t.buffers.Get().(*paths)
	defer t.buffers.Put(b)
	pattern, other := t.templateFor(route.Template).resolve(b, method, sent, &route)
	if other == nil {
		return pattern, sent
	}
	return pattern, string(other)
}

// templateFor returns the template of a text, or nil if text is empty.
func (t *Templates) templateFor(text string) *template {
	if text == "" {
		return nil
	}
	if known := (*t.known.Load())[text]; known != nil {
		return known
	}
	clone := strings.Clone(text) // so that a caller's Route stays on its stack
	made := newTemplate(t.parse(clone))
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := *t.known.Load(); len(known) < maxTemplates {
		next := make(map[string]*template, len(known)+1)
		maps.Copy(next, known)
		next[clone] = made
		t.known.Store(&next)
	}
	return made
}

// paths are buffers for two forms of a path.
type paths struct{ sent, routed []byte }

// resolve returns the pattern of a request. It also returns the path if the router's path
// differs from the path that was sent: the router may have removed slashes or an extension, or
// decoded "%2F" as "/". Otherwise such spellings of a path would have no parameters, and would
// evade limits by them. The path is in the buffers. A nil template means that there is no route.
func (t *template) resolve(b *paths, method, sent string, route *Route) (pattern string, path []byte) {
	if t == nil || len(route.Values) != t.params {
		return middleware.Unrouted, nil
	}
	switch pattern = t.pattern; route.Method {
	case http.MethodGet: // HEAD and GET have the same pattern, and share answers
		pattern = t.get
	case "", method:
	default:
		pattern = route.Method + " " + t.pattern
	}
	var same bool
	if b.sent, b.routed, same = t.appendPath(b.sent[:0], b.routed[:0], sent, route.Values); same {
		return pattern, nil
	}
	return pattern, b.routed
}
