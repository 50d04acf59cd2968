package semaphore

import (
	"context"
	"sync"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// stripeCount is the number of locks that the keys of a semaphore share.
const stripeCount = 64

// stripe holds the keys under one lock.
type stripe struct {
	semaphore *Memory // fixed
	mu        sync.Mutex
	keys      map[string]*keyState // allocated with the first key
	recent    *keyState            // the last one that got a permit, or nil
	most      int                  // number of keys that the map has had, and has room for
	idle      idleKeys
	free      *slot // list of free slots
	freeSlots int
	grants    uint
	stats     Stats
}

func (st *stripe) now() time.Duration { return time.Since(st.semaphore.start) }

// acquire takes a permit, denies it, or queues a waiter. It sets d, which must be zero. No permit is
// free while anyone waits.
func (st *stripe) acquire(name string, ask *Request, d *rules.Decision) (l *slot, w *waiter) {
	st.mu.Lock() // no defer: no code outside this package is called here
	k := st.recent
	if k == nil || k.name != name {
		k = st.keys[name]
	}
	if k != nil && k.permits != ask.Permits {
		st.resize(k, ask.Permits)
	}
	switch {
	case st.semaphore.draining.Load():
		*d = k.denial(ask, drainRetry)
	case k == nil || k.free() > 0:
		k = st.busyKey(k, name, ask.Permits)
		l = st.grant(k)
		k.setAllowed(d)
	default:
		w = st.queueOrDeny(k, ask, d)
	}
	st.mu.Unlock()
	return l, w
}

// queueOrDeny queues a waiter, or sets d to a denial.
func (st *stripe) queueOrDeny(k *keyState, ask *Request, d *rules.Decision) *waiter {
	k.contended = true
	if ask.Within <= 0 || k.waiting() >= max(ask.Queue, 0) {
		*d = k.denial(ask, k.estimate(ask, st.now()))
		return nil
	}
	if k.line == nil {
		k.line = &queue{newest: st.semaphore.unfair}
	}
	w := &waiter{key: k, class: ask.Class, ready: make(chan struct{})}
	k.line.push(w)
	st.stats.Waiting++
	return w
}

// wait waits until the waiter is served, ask.Within has passed or the context ends.
func (st *stripe) wait(ctx context.Context, w *waiter, ask *Request) (*slot, rules.Decision, error) {
	timer := time.NewTimer(ask.Within)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
		st.denyLate(w, ask)
	case <-ctx.Done():
		st.cancel(w)
		return nil, rules.Decision{}, ctx.Err()
	}
	return w.lease, w.decision, nil
}

// denyLate denies a waiter whose time has passed, unless it was served at the same moment.
func (st *stripe) denyLate(w *waiter, ask *Request) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if w.place == nil {
		return
	}
	st.removeWaiter(w)
	w.decision = w.key.denial(ask, w.key.estimate(ask, st.now()))
}

// cancel removes a waiter that gives up. A permit that it was granted at the same moment goes to
// the next waiter.
func (st *stripe) cancel(w *waiter) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case w.place != nil:
		st.removeWaiter(w)
	case w.lease != nil:
		st.giveBack(w.lease)
	}
}

func (st *stripe) removeWaiter(w *waiter) {
	w.key.line.remove(w)
	st.stats.Waiting--
}

// serve grants free permits to the waiters in order.
func (st *stripe) serve(k *keyState) {
	for w := k.nextWaiter(); w != nil && k.free() > 0; w = k.nextWaiter() {
		st.removeWaiter(w)
		w.lease = st.grant(k)
		k.setAllowed(&w.decision)
		close(w.ready)
	}
}

// resize changes the number of permits.
func (st *stripe) resize(k *keyState, permits int64) {
	k.permits = permits
	st.serve(k)
}

func (st *stripe) drain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, k := range st.keys {
		for w := k.nextWaiter(); w != nil; w = k.nextWaiter() {
			st.removeWaiter(w)
			w.decision = k.denial(&Request{Permits: k.permits}, drainRetry)
			close(w.ready)
		}
	}
}

func (st *stripe) addTo(all *Stats) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all.Keys += st.stats.Keys
	all.Held += st.stats.Held
	all.Waiting += st.stats.Waiting
}
