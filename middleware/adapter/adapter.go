package adapter

import (
	"net/http"
	"net/url"
	"sync"
)

// Guard is an *hotparam.Hotparam or a [*middleware.Guard].
type Guard interface {
	Handler(next http.Handler) http.Handler
}

// Route is the route of a request as its router knows it.
type Route struct {
	// Template is the route's template in the router's syntax. It is empty if the router
	// has no route for the request.
	Template string
	// Values are those of the template's parameters, in their order, escaped or not.
	Values []string
	// Method is the method of the route, if that is not the request's: GET, where the
	// route's handler serves HEAD too.
	Method string
}

// Adapter passes a router's requests through a guard. C is what the router passes on besides
// the request, such as a *gin.Context. An Adapter is safe for concurrent use.
type Adapter[C any] struct {
	templates templates
	calls     sync.Pool // of *call[C]
}

// New returns an adapter to g. It calls parse once for each template, and next for each
// request that the guard lets pass, with the writer and the request that the guard hands on:
// these measure what a response costs, and may be others than the router's.
func New[C any](g Guard, parse func(template string) []Part, next func(c C, w http.ResponseWriter, r *http.Request)) *Adapter[C] {
	a := &Adapter[C]{templates: newTemplates(parse)}
	a.calls.New = func() any {
		x := &call[C]{next: next}
		x.guarded = g.Handler(x)
		return x
	}
	return a
}

// Serve passes r through the guard and reports whether that called next. Otherwise the guard
// has answered the request. While the guard has r, its Pattern and URL are those of the
// route; next gets it as it was. A panic of next goes through Serve.
func (a *Adapter[C]) Serve(c C, w http.ResponseWriter, r *http.Request, route Route) (passed bool) {
	x := a.calls.Get().(*call[C])
	x.c, x.in, x.pattern, x.url, x.passed = c, r, r.Pattern, r.URL, false
	x.setRoute(a.templates.get(route.Template), &route)
	x.guarded.ServeHTTP(w, r)
	passed = x.passed
	if !passed {
		x.restore(r)
	}
	var none C
	x.c, x.in, x.url = none, nil, nil
	a.calls.Put(x) // not after a panic, of whose request something may be in use
	return passed
}

// call is one request. It is pooled with the guard's handler around it, so that a request
// allocates nothing.
type call[C any] struct {
	next    func(C, http.ResponseWriter, *http.Request)
	guarded http.Handler

	c       C
	in      *http.Request // the router's
	pattern string        // of in
	url     *url.URL      // of in
	passed  bool

	paths paths
}

// ServeHTTP is called by the guard for a request that passes.
func (x *call[C]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.passed = true
	x.restore(x.in)
	x.restore(r) // the guard may have made another
	x.next(x.c, w, r)
}

func (x *call[C]) restore(r *http.Request) { r.Pattern, r.URL = x.pattern, x.url }

// setRoute sets the request's pattern, and its path if the router has another than the one
// that was sent.
func (x *call[C]) setRoute(t *template, route *Route) {
	r := x.in
	var path []byte
	if r.Pattern, path = t.resolve(&x.paths, r.Method, r.URL.EscapedPath(), route); path == nil {
		return
	}
	u := *r.URL
	u.RawPath = string(path)
	u.Path, _ = url.PathUnescape(u.RawPath) // it is escaped correctly
	r.URL = &u
}
