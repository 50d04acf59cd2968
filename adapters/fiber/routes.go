package hpfiber

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofiber/fiber/v3"

	"github.com/hotparam/hotparam/middleware/adapter"
)

// routes finds the routes of requests. Fiber knows a route only once it calls its handler: in
// Use it has none yet. So requests are matched by Fiber itself, in an application that has
// copies of the routes behind the guard, whose handlers do nothing.
type routes struct {
	templates *adapter.Templates
	finders   atomic.Pointer[map[place]*finder]
	mu        sync.Mutex // held to add
}

// place is where a guard stands: a route of the application, in the order of a method.
type place struct {
	app    *fiber.App
	route  *fiber.Route
	method string
}

// finder is the application of copies.
type finder struct {
	app      *fiber.App
	handlers uint32 // of the original, when its routes were copied
}

func newRoutes() *routes {
	r := &routes{templates: adapter.NewTemplates(parse)}
	r.finders.Store(new(map[place]*finder))
	return r
}

// resolve returns the pattern and the path by which rules know the request. sent is the path
// that the client sent.
func (r *routes) resolve(c fiber.Ctx, sent string) (pattern, path string) {
	method := c.Method()
	f := r.finder(place{c.App(), c.Route(), method})
	user := c.Context() // which AcquireCtx clears
	match := f.app.AcquireCtx(c.RequestCtx())
	defer f.app.ReleaseCtx(match)
	c.SetContext(user)
	match.Method(method)
	var route adapter.Route
	var buf [8]string
	if errors.Is(match.RestartRouting(), errFound) {
		found := match.Route()
		route.Template, route.Method, route.Values = found.Path, found.Method, buf[:0]
		for _, name := range found.Params {
			route.Values = append(route.Values, match.Params(name))
		}
	}
	return r.templates.Resolve(method, sent, route)
}

// finder returns the finder of a place. Routes that were added or removed since are copied
// again.
func (r *routes) finder(p place) *finder {
	handlers := p.app.HandlersCount()
	if f := (*r.finders.Load())[p]; f != nil && f.handlers == handlers {
		return f
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.finders.Load()
	if f := known[p]; f != nil && f.handlers == handlers {
		return f
	}
	f := &finder{newFinder(p), handlers}
	if len(known) < maxPlaces {
		next := make(map[place]*finder, len(known)+1)
		maps.Copy(next, known)
		next[p] = f
		r.finders.Store(&next)
	}
	return f
}

// maxPlaces bounds the finders that are kept. A guard stands at some places, for each of nine
// methods.
const maxPlaces = 4096

// errFound is returned by the handler of a route that was found.
var errFound = errors.New("hpfiber: found")

// find is the handler of all copies. It is alone at its route, so that it is a middleware only
// if it is that by Use.
func find(c fiber.Ctx) error {
	if c.IsMiddleware() {
		return c.Next()
	}
	return errFound
}

// newFinder returns an application with the method's routes, from that of the guard on.
func newFinder(p place) *fiber.App {
	config, stack := p.app.Config(), p.app.Stack()
	app := fiber.New(fiber.Config{
		CaseSensitive: config.CaseSensitive, StrictRouting: config.StrictRouting,
		UnescapePath: config.UnescapePath, RequestMethods: config.RequestMethods,
	})
	app.Use(func(fiber.Ctx) error { return nil }) // the last: without it, Fiber would answer
	at := slices.Index(config.RequestMethods, p.method)
	own := stack[at]
	if from := slices.Index(own, p.route); from > 0 {
		own = own[from:]
	}
	var gets []*fiber.Route
	if get := slices.Index(config.RequestMethods, fiber.MethodGet); p.method == fiber.MethodHead && get >= 0 {
		gets = stack[get]
	}
	copies := make([]*fiber.Route, 0, len(own)+1)
	for _, route := range own {
		c := *route
		c.Handlers = []fiber.Handler{find}
		if !config.StrictRouting && len(c.Path) > 1 { // a slash at the end means nothing
			c.Path = "/" + strings.TrimRight(c.Path[1:], "/")
		}
		if slices.ContainsFunc(gets, func(get *fiber.Route) bool { return sameHandlers(get, route) }) {
			c.Method = fiber.MethodGet // whose handler serves HEAD too
		}
		copies = append(copies, &c)
	}
	all := app.Stack()
	all[at] = append(copies, all[at]...)
	return app.RebuildTree()
}

// sameHandlers reports whether the one route was made from the other.
func sameHandlers(a, b *fiber.Route) bool {
	return a.Path == b.Path && len(a.Handlers) > 0 && len(b.Handlers) > 0 && &a.Handlers[0] == &b.Handlers[0]
}
