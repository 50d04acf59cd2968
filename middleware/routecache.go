package middleware

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// routeCache holds routes by the router's pattern, or the resource's name, and
// the method. Reading it takes no lock. Names come from the program and are few,
// but methods come from clients, who could send a new one each time: then the
// methods that are in common use must still find room, and the rest is made anew
// for each request.
type routeCache struct {
	known atomic.Pointer[map[string][]methodRoute]
	mu    sync.Mutex // held to add
}

type methodRoute struct {
	method string
	route  *route
}

const (
	maxNames   = 4096
	maxMethods = 8 // of a name, those in common use aside
)

func (c *routeCache) init() { c.known.Store(new(map[string][]methodRoute)) }

func (c *routeCache) find(method, name string) *route {
	routes := (*c.known.Load())[name]
	for i := range routes {
		if routes[i].method == method {
			return routes[i].route
		}
	}
	return nil
}

func (c *routeCache) add(method, name string, r *route) {
	if !c.room(method, name) {
		return // without the lock, which all would share
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.room(method, name) || c.find(method, name) != nil {
		return
	}
	next := maps.Clone(*c.known.Load())
	if next == nil {
		next = make(map[string][]methodRoute)
	}
	next[strings.Clone(name)] = append(slices.Clip(next[name]), methodRoute{strings.Clone(method), r})
	c.known.Store(&next)
}

func (c *routeCache) room(method, name string) bool {
	known := *c.known.Load()
	routes, ok := known[name]
	return (ok || len(known) < maxNames) && (len(routes) < maxMethods || isCommon(method))
}

func isCommon(method string) bool {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return true
	}
	return false
}
