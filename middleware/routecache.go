package middleware

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// routeCache holds routes, of type R, by method and the router's pattern, or by the resource's name.
// Reading it takes no lock. Names come from the program and are few. Methods come from
// clients, which could send a new one each time. So there is always room for common
// methods, and routes of other methods may be made again for each request.
type routeCache[R any] struct {
	known atomic.Pointer[map[string][]knownRoute[R]] // by name; never changed
	mu    sync.Mutex                                 // held to add
}

type knownRoute[R any] struct {
	method string
	route  *R
}

const (
	maxNames   = 4096
	maxMethods = 8 // of a name, not counting common methods
)

func (c *routeCache[R]) init() { c.known.Store(&map[string][]knownRoute[R]{}) }

func (c *routeCache[R]) lookup(method, name string) *R {
	for _, k := range (*c.known.Load())[name] {
		if k.method == method {
			return k.route
		}
	}
	return nil
}

// add adds a route if there is room. It reports whether it did.
func (c *routeCache[R]) add(method, name string, r *R) bool {
	if !c.hasRoom(method, name) {
		return false // without the lock, which requests could contend for
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasRoom(method, name) || c.lookup(method, name) != nil {
		return false
	}
	known := maps.Clone(*c.known.Load())
	known[strings.Clone(name)] = append(slices.Clip(known[name]), knownRoute[R]{strings.Clone(method), r})
	c.known.Store(&known)
	return true
}

// full reports whether there is no room for another name.
func (c *routeCache[R]) full() bool { return len(*c.known.Load()) >= maxNames }

func (c *routeCache[R]) hasRoom(method, name string) bool {
	methods := len((*c.known.Load())[name])
	return (methods > 0 || !c.full()) && (methods < maxMethods || isCommon(method))
}

func isCommon(method string) bool {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return true
	}
	return false
}
