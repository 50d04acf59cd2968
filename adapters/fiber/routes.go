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

// routes finds the routes of requests. Fiber knows a route only once it calls its handler; in
// Use it has none yet. So Fiber itself matches requests in a second application, with copies of
// the routes after the guard whose handlers do nothing.
type routes struct {
	templates *adapter.Templates
	finders   atomic.Pointer[map[guardPlace]*finder]
	mu        sync.Mutex // held to add
}

// guardPlace is the place of a guard: a route of the application, in the order of a method.
type guardPlace struct {
	app    *fiber.App
	route  *fiber.Route
	method string
}

// finder is the application with the copies.
type finder struct {
	app      *fiber.App
	handlers uint32 // number of the original's handlers when its routes were copied
}

func newRoutes() *routes {
	r := &routes{templates: adapter.NewTemplates(parse)}
	r.finders.Store(new(map[guardPlace]*finder))
	return r
}

// resolve returns the pattern and the path of the request as rules name them. sent is the path
// that the client sent.
func (r *routes) resolve(c fiber.Ctx, sent string) (pattern, path string) {
	method := c.Method()
	f := r.finder(guardPlace{c.App(), c.Route(), method})
	user := c.Context() // AcquireCtx clears it
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

// finder returns the finder of a place. It copies the routes again if some were added or removed
// since.
func (r *routes) finder(p guardPlace) *finder {
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
		next := make(map[guardPlace]*finder, len(known)+1)
		maps.Copy(next, known)
		next[p] = f
		r.finders.Store(&next)
	}
	return f
}

// maxPlaces bounds the number of finders that are kept. A guard has some places, for each of nine
// methods.
const maxPlaces = 4096

// errFound is returned by the handler of a route that was found.
var errFound = errors.New("hpfiber: found")

// find is the handler of all copies. It is the only handler of its route, so that it is a
// middleware only if it was added by Use.
func find(c fiber.Ctx) error {
	if c.IsMiddleware() {
		return c.Next()
	}
	return errFound
}

// newFinder returns an application with the method's routes, beginning with the guard's.
func newFinder(p guardPlace) *fiber.App {
	config, stack := p.app.Config(), p.app.Stack()
	app := fiber.New(fiber.Config{
		CaseSensitive: config.CaseSensitive, StrictRouting: config.StrictRouting,
		UnescapePath: config.UnescapePath, RequestMethods: config.RequestMethods,
	})
	app.Use(func(fiber.Ctx) error { return nil }) // the last route: without it, Fiber would answer
	i := slices.Index(config.RequestMethods, p.method)
	inOrder := stack[i]
	if from := slices.Index(inOrder, p.route); from > 0 {
		inOrder = inOrder[from:]
	}
	var gets []*fiber.Route
	if get := slices.Index(config.RequestMethods, fiber.MethodGet); p.method == fiber.MethodHead && get >= 0 {
		gets = stack[get]
	}
	copies := make([]*fiber.Route, 0, len(inOrder)+1)
	for _, route := range inOrder {
		c := *route
		c.Handlers = []fiber.Handler{find}
		if !config.StrictRouting && len(c.Path) > 1 { // a slash at the end has no meaning
			c.Path = "/" + strings.TrimRight(c.Path[1:], "/")
		}
		if slices.ContainsFunc(gets, func(get *fiber.Route) bool { return sameHandlers(get, route) }) {
			c.Method = fiber.MethodGet // the handler of GET also serves HEAD
		}
		copies = append(copies, &c)
	}
	all := app.Stack()
	all[i] = append(copies, all[i]...)
	return app.RebuildTree()
}

// sameHandlers reports whether one route was made from the other.
func sameHandlers(a, b *fiber.Route) bool {
	return a.Path == b.Path && len(a.Handlers) > 0 && len(b.Handlers) > 0 && &a.Handlers[0] == &b.Handlers[0]
}
