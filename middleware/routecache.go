package middleware

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// routeCache holds routes by method and the router's pattern, or by the resource's name.
// Reading it takes no lock. Names come from the program and are few. Methods come from
// clients, which could send a new one each time. So there is always room for common
// methods, and routes of other methods may be made again for each request.
type routeCache struct {
	known atomic.Pointer[routeTable]
	mu    sync.Mutex // held to add
}

// routeTable is an immutable open-addressing table, at most half full. A Go map of the same
// names takes three times as long.
type routeTable struct {
	slots         []knownRoute // a power of two
	routes, names int
}

type knownRoute struct {
	method, name string
	route        *route // nil if the slot is free
}

const (
	maxNames   = 4096
	maxMethods = 8 // of a name, not counting common methods
)

// nameSeed keys the hash of names.
var nameSeed = maphash.MakeSeed()

func (c *routeCache) init() { c.known.Store(&routeTable{slots: make([]knownRoute, 1)}) }

func (c *routeCache) lookup(method, name string) *route {
	return c.known.Load().slotFor(method, name).route
}

// add adds a route if there is room. It reports whether it did.
func (c *routeCache) add(method, name string, r *route) bool {
	if !c.known.Load().room(method, name) {
		return false // without the lock, which requests could contend for
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known.Load()
	if !known.room(method, name) || known.slotFor(method, name).route != nil {
		return false
	}
	c.known.Store(known.with(knownRoute{strings.Clone(method), strings.Clone(name), r}))
	return true
}

// full reports whether there is no room for another name.
func (c *routeCache) full() bool { return c.known.Load().names >= maxNames }

// slotFor returns the slot of the route, or the free slot where it would be.
func (t *routeTable) slotFor(method, name string) *knownRoute {
	for i := maphash.String(nameSeed, name); ; i++ {
		if s := &t.slots[i&uint64(len(t.slots)-1)]; s.route == nil || s.name == name && s.method == method {
			return s
		}
	}
}

// methods counts the routes of a name.
func (t *routeTable) methods(name string) (n int) {
	for i := maphash.String(nameSeed, name); ; i++ {
		s := &t.slots[i&uint64(len(t.slots)-1)]
		if s.route == nil {
			return n
		}
		if s.name == name {
			n++
		}
	}
}

func (t *routeTable) room(method, name string) bool {
	methods := t.methods(name)
	return (methods > 0 || t.names < maxNames) && (methods < maxMethods || isCommon(method))
}

// with returns a table that has one more route.
func (t *routeTable) with(r knownRoute) *routeTable {
	next := &routeTable{routes: t.routes + 1, names: t.names}
	if t.methods(r.name) == 0 {
		next.names++
	}
	if size := 1 << bits.Len(uint(2*next.routes-1)); size == len(t.slots) {
		next.slots = slices.Clone(t.slots)
	} else {
		next.slots = make([]knownRoute, size)
		for _, s := range t.slots {
			if s.route != nil {
				*next.slotFor(s.method, s.name) = s
			}
		}
	}
	*next.slotFor(r.method, r.name) = r
	return next
}

func isCommon(method string) bool {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return true
	}
	return false
}
