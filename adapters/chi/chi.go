// Package hpchi guards the routes of a chi router by hotparam.
//
//	hp, err := hotparam.Open(ctx, "hotparam.yaml")
//	…
//	r := chi.NewRouter()
//	r.Use(hpchi.Middleware(hp))
//	r.Get("/users/{id:[0-9]+}", user) // GET /users/{id}
//
// Rules see chi's templates and parameters in the syntax of [http.ServeMux]: "/files/*" is
// /files/{path...}, with the parameter path:path, and a segment of several parameters,
// "/{month}-{day}", is one, {month_day}. Routes of mounted routers are whole.
//
// chi.go finds the route of a request, and onhot.go has the runs that answer several requests.
package hpchi

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-chi/chi/v5"

	"github.com/hotparam/hotparam/middleware/adapter"
)

// Middleware returns a middleware that lets hp, a *hotparam.Hotparam or a
// *middleware.Guard, decide on each request. It may be used in Use of any router, in With and
// in Group: it finds the route before chi does. Requests without a route are only subject to
// rules that match by the path or match all.
func Middleware(hp adapter.Guard) func(http.Handler) http.Handler {
	known := new(mounts)
	return func(next http.Handler) http.Handler {
		a := adapter.New(hp, parse,
			func(_ *finder, w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) },
			func(f *finder) http.Handler { return f.lead(next) })
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f := finders.Get().(*finder)
			f.rctx = chi.RouteContext(r.Context())
			f.find(f.rctx, r, known)
			a.Serve(f, w, r, f.route)
			f.reset()
			finders.Put(f)
		})
	}
}

// finder finds the route of a request.
type finder struct {
	rctx  *chi.Context // of the request; nil if it is not in a router
	route adapter.Route
	found *chi.Context // context of a search
}

var finders = sync.Pool{New: func() any { return &finder{found: chi.NewRouteContext()} }}

func (f *finder) reset() {
	clear(f.route.Values)
	f.route = adapter.Route{Values: f.route.Values[:0]}
	f.found.Reset()
	f.rctx = nil
}

// find finds the request's route. In Use, chi has not searched for it yet, and in a mounted
// router chi knows only the previous part. So the search begins at the outermost router.
func (f *finder) find(rctx *chi.Context, r *http.Request, known *mounts) {
	if rctx == nil || rctx.Routes == nil {
		return // not in a router
	}
	stubs := known.below(rctx.Routes)
	if n := len(rctx.RoutePatterns); n > 0 && !strings.HasSuffix(rctx.RoutePatterns[n-1], "*") {
		if template := join(rctx.RoutePatterns); stubs[template] == nil {
			f.set(rctx.RouteMethod, template, &rctx.URLParams)
			return
		}
	}
	method, path := rctx.RouteMethod, fullPath(rctx, r)
	if method == "" {
		method = r.Method
	}
	template := f.search(rctx.Routes, method, path, stubs)
	if template == "" && method == http.MethodHead {
		method = http.MethodGet // for chi's middleware.GetHead, which may come later
		f.found.Reset()
		template = f.search(rctx.Routes, method, path, stubs)
	}
	if template != "" {
		f.set(method, template, &f.found.URLParams)
	}
}

// search returns the template of the route that serves this path in the router, or "". Chi's own
// search ends where a router is mounted at exactly this path.
func (f *finder) search(router chi.Routes, method, path string, stubs map[string]chi.Routes) string {
	if !router.Match(f.found, method, path) {
		return ""
	}
	template := join(f.found.RoutePatterns)
	for depth := 0; depth < len(stubs); depth++ {
		mounted := stubs[template]
		if mounted == nil || f.found.RoutePatterns[len(f.found.RoutePatterns)-1] == "/" && depth > 0 {
			break
		}
		if !mounted.Match(f.found, method, "/") {
			return ""
		}
		template = join(f.found.RoutePatterns)
	}
	return template
}

func (f *finder) set(method, template string, params *chi.RouteParams) {
	f.route.Method, f.route.Template = method, template
	wildcard := strings.HasSuffix(template, "*")
	for i, key := range params.Keys { // a "*" that is not the last is a mount's
		if key != "*" || wildcard && i == len(params.Keys)-1 {
			f.route.Values = append(f.route.Values, params.Values[i])
		}
	}
}

// join returns the template of patterns. All but the last are patterns of mounts. The root of
// a mounted router has the path of its mount, with and without a slash.
func join(patterns []string) string {
	if len(patterns) == 1 {
		return patterns[0]
	}
	var b strings.Builder
	for i, p := range patterns {
		if i < len(patterns)-1 {
			p = mountPath(p)
		} else if p == "/" && b.Len() > 0 {
			p = ""
		}
		b.WriteString(p)
	}
	return b.String()
}

// mountPath returns the path of a mount, given any of its three patterns.
func mountPath(pattern string) string {
	return strings.TrimSuffix(strings.TrimSuffix(pattern, "*"), "/")
}

// fullPath returns the path that the outermost router searches for.
func fullPath(rctx *chi.Context, r *http.Request) string {
	if path := rctx.RoutePath; len(rctx.RoutePatterns) > 0 { // patterns of mounts; path is the rest
		keys, values := rctx.URLParams.Keys, rctx.URLParams.Values
		if n := len(keys) - 1; n >= 0 && keys[n] == "*" && values[n] != "" { // the mount has not removed its part yet
			path = "/" + values[n]
		}
		if path == "" {
			path = "/"
		}
		return before(rctx) + path
	} else if path != "" {
		return path
	}
	if path := r.URL.RawPath; path != "" {
		return path
	}
	if path := r.URL.Path; path != "" {
		return path
	}
	return "/"
}

// before returns the part of the path that mounts have matched.
func before(rctx *chi.Context) string {
	var b strings.Builder
	i := 0
	for _, pattern := range rctx.RoutePatterns {
		for _, p := range parse(mountPath(pattern)) {
			if p.Name == "" {
				b.WriteString(p.Text)
				continue
			}
			for i < len(rctx.URLParams.Keys)-1 && rctx.URLParams.Keys[i] == "*" {
				i++
			}
			b.WriteString(rctx.URLParams.Values[i])
			i++
		}
	}
	return b.String()
}

// mounts are the routers mounted below a router, by the paths of their mounts, with and without a
// slash.
type mounts struct{ newest atomic.Pointer[mountsOf] }

type mountsOf struct {
	router chi.Routes
	stubs  map[string]chi.Routes
}

// below returns the mounts below a router. A middleware belongs to one router, or to few.
func (m *mounts) below(router chi.Routes) map[string]chi.Routes {
	if known := m.newest.Load(); known != nil && known.router == router {
		return known.stubs
	}
	made := &mountsOf{router, make(map[string]chi.Routes)}
	made.add("", router)
	m.newest.Store(made)
	return made.stubs
}

func (m *mountsOf) add(prefix string, router chi.Routes) {
	for _, route := range router.Routes() {
		if route.SubRoutes == nil {
			continue
		}
		path := prefix + mountPath(route.Pattern)
		m.stubs[path], m.stubs[path+"/"] = route.SubRoutes, route.SubRoutes
		m.add(path, route.SubRoutes)
	}
}

// parse returns the parts of a template of chi: text, {name}, {name:expression} and, at the
// end, *.
func parse(template string) (parts []adapter.Part) {
	for template != "" {
		i := strings.IndexAny(template, "{*")
		switch {
		case i < 0:
			return append(parts, adapter.Part{Text: template})
		case i > 0:
			parts = append(parts, adapter.Part{Text: template[:i]})
			template = template[i:]
		case template[0] == '*':
			return append(parts, adapter.Part{Name: "*", Rest: true})
		default:
			end := closing(template)
			name, _, _ := strings.Cut(template[1:end], ":")
			parts = append(parts, adapter.Part{Name: name})
			template = template[min(end+1, len(template)):]
		}
	}
	return parts
}

// closing returns the index of the brace that closes the brace at the beginning of text. An
// expression may contain braces.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
