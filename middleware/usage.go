package middleware

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/wire"
)

// usageMeter adds up, by key, the time of requests whose rule finds hot keys by their cost. It adds
// those that ended and those that run every chargeEvery, and the collector takes the sums with its
// next flush.
type usageMeter struct {
	now time.Duration // end of the interval that is added; used by the timer's goroutine alone

	mu     sync.Mutex // guards the rest
	keys   map[string]*keyUse
	routes map[string]*keyUse // by the part of the key before its parameters
	missed int64              // requests that found no room since the last yield
}

// keyUse is the usage of a key, or of all keys of a route.
type keyUse struct {
	wire.Usage
	route *keyUse // of a key
	held  bool    // whether the key is held, so that it is sent in any case
}

// endedUses are requests that have ended since the last interval.
type endedUses struct {
	uses   []endedUse
	keys   []byte // their keys, one after the other
	missed int64
}

// endedUse is one key of a request that has ended.
type endedUse struct {
	busy, took time.Duration // its time since it was last added, and its whole time
	begun      int64         // 1 if it was never added
	to         int           // end of its key in endedUses.keys
	again      bool          // whether an earlier one is of the same request and rule
}

// maxEndedUses bounds the uses of a shard in an interval: 650,000 a second in a process.
const maxEndedUses = 4096

// add adds a key of a request that ends.
func (e *endedUses) add(key []byte, use endedUse) {
	if len(e.uses) == maxEndedUses {
		e.missed++
		return
	}
	e.keys = append(e.keys, key...)
	use.to = len(e.keys)
	e.uses = append(e.uses, use)
}

// take returns what has ended, and leaves nothing.
func (e *endedUses) take() endedUses {
	taken := *e
	*e = endedUses{}
	return taken
}

// giveBack returns the memory of what was taken.
func (e *endedUses) giveBack(taken endedUses) {
	if len(e.uses) == 0 && cap(taken.uses) > cap(e.uses) {
		e.uses, e.keys = taken.uses[:0], taken.keys[:0]
	}
}

// begin begins the interval up to now.
func (m *usageMeter) begin(now time.Duration) { m.now = now }

// addEnded adds requests that have ended in the interval.
func (m *usageMeter) addEnded(e endedUses) {
	if len(e.uses) == 0 && e.missed == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed += e.missed
	from := 0
	for i := range e.uses {
		x := &e.uses[i]
		u := wire.Usage{Busy: x.busy, Begun: x.begun, Ended: 1, Took: x.took}
		m.add(e.keys[from:x.to], &u, x.again)
		from = x.to
	}
}

// addHeld adds refused requests of a key that is held.
func (m *usageMeter) addHeld(key string, refused int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add([]byte(key), &wire.Usage{Refused: refused}, false)
	if k := m.keys[key]; k != nil {
		k.held = true
	}
}

// maxUsedKeys bounds the keys of a process in an interval, and its routes. Other keys count for their
// route alone.
const maxUsedKeys = 1 << 15

// add adds to the usage of a key and, unless an earlier key of the request has been added, to that
// of its route.
func (m *usageMeter) add(key []byte, u *wire.Usage, again bool) {
	name, _, _ := bytes.Cut(key, []byte{'?'})
	route := m.routes[string(name)]
	if route == nil {
		if len(m.routes) == maxUsedKeys {
			m.missed += u.Begun
			return
		}
		if m.routes == nil {
			m.routes, m.keys = make(map[string]*keyUse), make(map[string]*keyUse)
		}
		route = new(keyUse)
		m.routes[string(name)] = route
	}
	if !again {
		route.Add(u)
	}
	k := m.keys[string(key)]
	if k == nil {
		if len(m.keys) == maxUsedKeys {
			m.missed += u.Begun
			return
		}
		k = &keyUse{route: route}
		m.keys[string(key)] = k
	}
	k.Add(u)
}

// Bounds of the usage that an instance sends in an interval.
const (
	maxBusyRoutes = 64 // with the most time
	maxBusyKeys   = 64 // with the most time
	maxSlowKeys   = 32 // whose requests took most beyond those of their route that ended with them
)

// yield calls yield for the usage since the last call, until yield returns false: of routes, of the
// keys that matter for what others wait for, and of the held keys. It returns the number of requests
// that found no room.
func (m *usageMeter) yield(yield func(collector.KeyOrigin) bool) (missed int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	missed, m.missed = m.missed, 0
	send := func(kind wire.OriginKind, key string, k *keyUse) bool {
		rule, text, _ := bytes.Cut([]byte(key), []byte{' '})
		if len(text) == 0 {
			text = []byte{'*'}
		}
		n, name := k.Encode()
		return yield(collector.KeyOrigin{Rule: rule, Text: text, Kind: kind, Name: name, N: n})
	}
	routes := byBusy(m.routes)
	for _, r := range routes[:min(len(routes), maxBusyRoutes)] {
		if !send(wire.RouteUsage, r.key, r.keyUse) {
			break
		}
	}
	keys := byBusy(m.keys)
	busy := min(len(keys), maxBusyKeys)
	slices.SortFunc(keys[busy:], func(a, b namedUse) int { return cmp.Compare(b.excess(), a.excess()) })
	for i, k := range keys {
		if (i < busy+maxSlowKeys || k.held) && !send(wire.KeyUsage, k.key, k.keyUse) {
			break
		}
	}
	clear(m.keys)
	clear(m.routes)
	return missed
}

// excess returns by how much the requests of a key that ended took longer than those of its route.
func (k *keyUse) excess() time.Duration {
	if k.route.Ended == 0 {
		return 0
	}
	return k.Took - k.route.Took/time.Duration(k.route.Ended)*time.Duration(k.Ended)
}

type namedUse struct {
	key string
	*keyUse
}

// byBusy returns usages, those with the most time first.
func byBusy(of map[string]*keyUse) []namedUse {
	all := make([]namedUse, 0, len(of))
	for key, u := range of {
		all = append(all, namedUse{key, u})
	}
	slices.SortFunc(all, func(a, b namedUse) int {
		return cmp.Or(cmp.Compare(b.Busy, a.Busy), cmp.Compare(a.key, b.key))
	})
	return all
}
