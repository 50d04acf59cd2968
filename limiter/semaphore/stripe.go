package semaphore

import (
	"context"
	"sync"
	"time"

	"github.com/hotparam/hotparam"
)

// stripeCount is how many locks the keys of a semaphore share.
const stripeCount = 64

// stripe is the keys under one lock.
type stripe struct {
	semaphore *Memory // fixed
	mu        sync.Mutex
	keys      map[string]*keyState // those with held permits
	peak      int                  // most keys since the map was made
	idle      *keyState            // kept for reuse
	idles     int
	leases    []lease  // to be used
	stats     Stats    // but for Keys
	_         [32]byte // whole cache lines
}

func (st *stripe) now() time.Duration { return time.Since(st.semaphore.start) }

// acquire takes permits, denies them, or queues a waiter. A caller that passes because there
// is no room has neither lease nor waiter.
func (st *stripe) acquire(name string, ask *Ask) (*lease, *waiter, hotparam.Decision) {
	now := st.now()
	st.mu.Lock()
	defer st.mu.Unlock()
	k := st.keys[name]
	if k != nil && k.permits != ask.Permits {
		st.resize(k, ask.Permits, now)
	}
	switch {
	case st.semaphore.draining.Load():
		st.stats.Drained++
		return nil, nil, k.denied(ask, drainRetry)
	case ask.N > ask.Permits:
		st.stats.TooMany++
		return nil, nil, k.denied(ask, 0)
	case k == nil:
		if k = st.newKey(name, ask.Permits, now); k == nil {
			st.stats.Open++
			return nil, nil, hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
		}
	}
	switch {
	case ask.N <= k.free() && (k.line == nil || k.line.ahead(ask.Class) == 0):
		return st.grant(k, ask.N, now), nil, k.within()
	case ask.Within <= 0:
		st.stats.Busy++
		return nil, nil, k.denied(ask, k.estimate(ask, now))
	case k.waiting() >= max(ask.Queue, 0):
		st.stats.Full++
		return nil, nil, k.denied(ask, k.estimate(ask, now))
	}
	if k.line == nil {
		k.line = &queue{newest: st.semaphore.unfair}
	}
	w := &waiter{key: k, n: ask.N, class: ask.Class, ready: make(chan struct{})}
	k.line.push(w)
	st.stats.Waiting++
	return nil, w, hotparam.Decision{}
}

// wait waits until the waiter is served, ask.Within has passed or the context ends.
func (st *stripe) wait(ctx context.Context, w *waiter, ask *Ask) (*lease, hotparam.Decision, error) {
	timer := time.NewTimer(ask.Within)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
		st.late(w, ask)
	case <-ctx.Done():
		st.cancel(w)
		return nil, hotparam.Decision{}, ctx.Err()
	}
	return w.lease, w.decision, nil
}

// late denies a waiter whose time is over, unless it was served at the same moment.
func (st *stripe) late(w *waiter, ask *Ask) {
	now := st.now()
	st.mu.Lock()
	defer st.mu.Unlock()
	if !w.queued {
		return
	}
	st.leave(w, now)
	st.stats.Late++
	w.decision = w.key.denied(ask, w.key.estimate(ask, now))
}

// cancel removes a waiter that gives up. What it was granted at the same moment goes to the
// next.
func (st *stripe) cancel(w *waiter) {
	now := st.now()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.stats.Cancelled++
	switch {
	case w.queued:
		st.leave(w, now)
	case w.lease != nil:
		st.stats.Admitted--
		st.giveBack(w.lease, now)
	}
}

// leave removes a waiter from the queue. Those behind it may fit where it did not.
func (st *stripe) leave(w *waiter, now time.Duration) {
	w.key.line.remove(w)
	st.stats.Waiting--
	st.serve(w.key, now)
}

// serve grants free permits to the waiters in order, until one does not fit.
func (st *stripe) serve(k *keyState, now time.Duration) {
	if k.line == nil {
		return
	}
	for w := k.line.head(); w != nil && w.n <= k.free(); w = k.line.head() {
		k.line.remove(w)
		st.stats.Waiting--
		w.lease = st.grant(k, w.n, now)
		w.decision = k.within()
		close(w.ready)
	}
}

// resize changes the number of permits, and denies waiters that want more.
func (st *stripe) resize(k *keyState, permits int64, now time.Duration) {
	less := permits < k.permits
	k.permits = permits
	if less && k.line != nil {
		k.line.each(func(w *waiter) {
			if w.n > permits {
				st.stats.TooMany++
				st.dismiss(w, 0)
			}
		})
	}
	st.serve(k, now)
}

func (st *stripe) drain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, k := range st.keys {
		if k.line != nil {
			k.line.each(func(w *waiter) {
				st.stats.Drained++
				st.dismiss(w, drainRetry)
			})
		}
	}
}

// dismiss denies a waiter.
func (st *stripe) dismiss(w *waiter, retry time.Duration) {
	w.key.line.remove(w)
	st.stats.Waiting--
	w.decision = w.key.denied(&Ask{Permits: w.key.permits}, retry)
	close(w.ready)
}

func (st *stripe) addTo(all *Stats) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all.Held += st.stats.Held
	all.Waiting += st.stats.Waiting
	all.Admitted += st.stats.Admitted
	all.Busy += st.stats.Busy
	all.Full += st.stats.Full
	all.Late += st.stats.Late
	all.TooMany += st.stats.TooMany
	all.Drained += st.stats.Drained
	all.Cancelled += st.stats.Cancelled
	all.Open += st.stats.Open
}
