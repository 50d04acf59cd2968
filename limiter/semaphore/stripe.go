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
	most      int                  // number of keys that the map has had, and has room for
	idle      idleKeys
	free      *slot // list of free slots
	freeSlots int
	grants    uint
	stats     Stats
}

func (st *stripe) now() time.Duration { return time.Since(st.semaphore.start) }

// acquire takes permits, denies them, or queues a waiter. It sets d, which must be zero.
func (st *stripe) acquire(name string, ask *Request, d *rules.Decision) (l *slot, w *waiter) {
	st.mu.Lock() // no defer: no code outside this package is called here
	k := st.keys[name]
	if k != nil && k.permits != ask.Permits {
		st.resize(k, ask.Permits)
	}
	if k != nil && k.permits == ask.Permits && ask.N <= k.free() && k.line == nil && !st.semaphore.draining.Load() {
		st.markBusy(k) // the common case, in as few calls as possible
		l = st.grant(k, ask.N)
		k.setAllowed(d)
		st.mu.Unlock()
		return l, nil
	}
	switch {
	case st.semaphore.draining.Load():
		*d = k.denial(ask, drainRetry)
	case ask.N > ask.Permits:
		*d = k.denial(ask, 0)
	default:
		l, w = st.grantOrQueue(st.busyKey(k, name, ask.Permits), ask, d)
	}
	st.mu.Unlock()
	return l, w
}

// grantOrQueue is like acquire, for a key that has at least ask.N permits in all.
func (st *stripe) grantOrQueue(k *keyState, ask *Request, d *rules.Decision) (*slot, *waiter) {
	if ask.N <= k.free() && (k.line == nil || k.line.ahead(ask.Class) == 0) {
		l := st.grant(k, ask.N)
		k.setAllowed(d)
		return l, nil
	}
	k.contended = true
	if ask.Within <= 0 || k.waiting() >= max(ask.Queue, 0) {
		*d = k.denial(ask, k.estimate(ask, st.now()))
		return nil, nil
	}
	if k.line == nil {
		k.line = &queue{newest: st.semaphore.unfair}
	}
	w := &waiter{key: k, n: ask.N, class: ask.Class, ready: make(chan struct{})}
	k.line.push(w)
	st.stats.Waiting++
	return nil, w
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

// cancel removes a waiter that gives up. Permits that it was granted at the same moment go to
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

// removeWaiter removes a waiter from the queue. Waiters behind it may fit where it did not.
func (st *stripe) removeWaiter(w *waiter) {
	w.key.line.remove(w)
	st.stats.Waiting--
	st.serve(w.key)
}

// serve grants free permits to the waiters in order, until one does not fit.
func (st *stripe) serve(k *keyState) {
	if k.line == nil {
		return
	}
	for w := k.line.head(); w != nil && w.n <= k.free(); w = k.line.head() {
		k.line.remove(w)
		st.stats.Waiting--
		w.lease = st.grant(k, w.n)
		k.setAllowed(&w.decision)
		close(w.ready)
	}
}

// resize changes the number of permits, and denies waiters that want more.
func (st *stripe) resize(k *keyState, permits int64) {
	less := permits < k.permits
	k.permits = permits
	if less && k.line != nil {
		for w := range k.line.all() {
			if w.n > permits {
				st.dismiss(w, 0)
			}
		}
	}
	st.serve(k)
}

func (st *stripe) drain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, k := range st.keys {
		if k.line != nil {
			for w := range k.line.all() {
				st.dismiss(w, drainRetry)
			}
		}
	}
}

// dismiss denies a waiter.
func (st *stripe) dismiss(w *waiter, retry time.Duration) {
	w.key.line.remove(w)
	st.stats.Waiting--
	w.decision = w.key.denial(&Request{Permits: w.key.permits}, retry)
	close(w.ready)
}

func (st *stripe) addTo(all *Stats) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all.Keys += st.stats.Keys
	all.Held += st.stats.Held
	all.Waiting += st.stats.Waiting
}
