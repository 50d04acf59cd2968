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
	missed int64              // requests that found no room since the last yieldUsage
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

// add adds the keys of a ticket that ends now.
func (e *endedUses) add(t *Ticket, now time.Duration) {
	busy, begun := t.meter(now)
	for i := range t.owed {
		o := &t.owed[i]
		if !o.rule.costs {
			continue
		}
		if len(e.uses) == maxEndedUses {
			e.missed++
			continue
		}
		e.keys = append(e.keys, t.keys[o.from:o.to]...)
		e.uses = append(e.uses, endedUse{busy, max(0, now-t.start-t.waited), begun, len(e.keys), t.isAgain(i)})
	}
}

// meter returns the ticket's time up to now that has not been added, and 1 if none has been. Time for
// which it waited for its client is left out.
func (t *Ticket) meter(now time.Duration) (busy time.Duration, begun int64) {
	if t.metedTo == 0 {
		begun = 1
	}
	waited := t.clientWait().total()
	busy = max(0, now-max(t.start, t.metedTo)-(waited-t.waited))
	t.metedTo, t.waited = now, waited
	return busy, begun
}

func (t *Ticket) clientWait() *clientWait {
	if t.client == nil {
		return nil
	}
	return &t.client.clientWait
}

// isAgain reports whether an earlier key of the ticket is of the same rule.
func (t *Ticket) isAgain(i int) bool { return i > 0 && t.owed[i-1].rule == t.owed[i].rule }

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

// addRunning adds a ticket that runs. The caller keeps it from being ended.
func (m *usageMeter) addRunning(t *Ticket) {
	if !t.metered || t.start >= m.now {
		return // it is added in the next interval
	}
	var u wire.Usage
	u.Busy, u.Begun = t.meter(m.now)
	m.addTicket(t, &u)
}

// addTicket adds usage to the keys of a ticket.
func (m *usageMeter) addTicket(t *Ticket, u *wire.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range t.owed {
		if o := &t.owed[i]; o.rule.costs {
			m.add(t.keys[o.from:o.to], u, t.isAgain(i))
		}
	}
}

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

// addWhole adds a request that was not started, whose time is known at its end alone.
func (m *usageMeter) addWhole(t *Ticket, took time.Duration) {
	m.addTicket(t, &wire.Usage{Busy: took, Took: took, Begun: 1, Ended: 1})
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

// yieldUsage calls yield for the usage since the last call, until yield returns false: of routes,
// of the keys that matter for what others wait for, and of the held keys.
func (g *Guard) yieldUsage(yield func(collector.KeyOrigin) bool) {
	m := &g.running.usage
	m.mu.Lock()
	defer m.mu.Unlock()
	g.stats.Unmeasured.Add(m.missed)
	m.missed = 0
	g.addRefused(m)
	if len(m.routes) == 0 {
		return
	}
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
}

// addRefused adds the requests of held keys that were refused since the last call.
func (g *Guard) addRefused(m *usageMeter) {
	if !g.rules.Load().costs {
		return
	}
	for _, h := range g.hot.All() {
		if h.Hold == nil {
			continue
		}
		state := g.stateOf(h.Key)
		if state == nil {
			continue
		}
		refused := state.refused.Load()
		key := h.Key.String()
		m.add([]byte(key), &wire.Usage{Refused: max(0, refused-state.refusedTold)}, false)
		if k := m.keys[key]; k != nil {
			k.held = true
		}
		state.refusedTold = refused
	}
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
