package adapter

import (
	"net/http"
	"net/url"
	"sync"
)

// Guard is a *hotparam.Hotparam or a [*middleware.Guard].
type Guard interface {
	Handler(next http.Handler) http.Handler
}

// Route is the route of a request as the router reports it.
type Route struct {
	// Template is the route's template in the router's syntax. It is empty if the router
	// has no route for the request.
	Template string
	// Values are the values of the template's parameters, in their order, escaped or not.
	Values []string
	// Method is the method of the route, if it differs from the request's: GET if the route's
	// handler also serves HEAD.
	Method string
}

// Adapter passes a router's requests through a guard. C is the value that the router passes on
// with the request, such as a *gin.Context. An Adapter is safe for concurrent use.
type Adapter[C any] struct {
	templates *Templates
	calls     sync.Pool // of *guardedCall[C]
}

// New returns an adapter to g. It calls parse once for each template. It calls next for each
// request that the guard lets pass, with the guard's writer and request, which measure the cost
// of the response and may differ from the router's. It calls lead as the guard calls
// [middleware.Leader.Lead]: lead returns the handler for one run that answers requests of a hot key
// together, or nil if they are handled alone. The handler must not use c. The run's request has the
// router's pattern and URL.
func New[C any](g Guard, parse func(template string) []Part, next func(c C, w http.ResponseWriter, r *http.Request), lead func(c C) http.Handler) *Adapter[C] {
	a := &Adapter[C]{templates: NewTemplates(parse)}
	a.calls.New = func() any {
		x := &guardedCall[C]{next: next, lead: lead}
		x.guarded = g.Handler(x)
		return x
	}
	return a
}

// Serve passes r through the guard and reports whether the guard called next. Otherwise the
// guard has answered the request. While the guard has r, its Pattern and URL are the route's;
// next gets the original ones. A panic of next propagates through Serve.
func (a *Adapter[C]) Serve(c C, w http.ResponseWriter, r *http.Request, route Route) (passed bool) {
	x := a.calls.Get().(*guardedCall[C])
	x.c, x.in, x.pattern, x.url, x.passed = c, r, r.Pattern, r.URL, false
	x.setRoute(a.templates.templateFor(route.Template), &route)
	x.guarded.ServeHTTP(w, r)
	passed = x.passed
	if !passed {
		x.restore(r)
	}
	var none C
	x.c, x.in, x.url = none, nil, nil
	a.calls.Put(x) // not after a panic, when something may still use x
	return passed
}

// Wraps reports whether w, the guard's writer, writes to the router's writer. If it does not, it
// receives the answer of a run; see [New].
func Wraps(w, routers http.ResponseWriter) bool {
	for w != routers {
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = inner.Unwrap()
	}
	return true
}

// guardedCall is one request. It is pooled with the guard's handler around it, so that a request
// allocates nothing.
type guardedCall[C any] struct {
	next    func(C, http.ResponseWriter, *http.Request)
	lead    func(C) http.Handler
	guarded http.Handler

	c       C
	in      *http.Request // the router's request
	pattern string        // Pattern of in
	url     *url.URL      // URL of in
	passed  bool

	paths paths
}

// ServeHTTP receives from the guard a request that passes.
func (x *guardedCall[C]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.passed = true
	x.restore(x.in)
	x.restore(r) // the guard may have made another request
	x.next(x.c, w, r)
}

// Lead implements [middleware.Leader].
func (x *guardedCall[C]) Lead() http.Handler {
	if !isSent(x.url, x.in) {
		return nil
	}
	next := x.lead(x.c)
	if next == nil {
		return nil
	}
	pattern, u := x.pattern, *x.url
	u.User = nil
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Pattern, r.URL = pattern, &u
		next.ServeHTTP(w, r)
	})
}

// isSent reports whether u, the router's URL of r, is the URL that was sent, or that the guard
// has. If it is neither, it may depend on anything, and requests with other URLs may have the same
// answers in the guard's view.
func isSent(u *url.URL, r *http.Request) bool {
	if u == r.URL {
		return true
	}
	sent, err := url.ParseRequestURI(r.RequestURI)
	return err == nil && sent.EscapedPath() == u.EscapedPath() && sent.RawQuery == u.RawQuery
}

func (x *guardedCall[C]) restore(r *http.Request) { r.Pattern, r.URL = x.pattern, x.url }

// setRoute sets the request's pattern. It also sets the path if the router's path differs from
// the path that was sent.
func (x *guardedCall[C]) setRoute(t *template, route *Route) {
	r := x.in
	var path []byte
	if r.Pattern, path = t.resolve(&x.paths, r.Method, r.URL.EscapedPath(), route); path == nil {
		return
	}
	u := *r.URL
	u.RawPath = string(path)
	u.Path, _ = url.PathUnescape(u.RawPath) // no error: RawPath is escaped correctly
	r.URL = &u
}
