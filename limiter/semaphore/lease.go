package semaphore

import "time"

// lease is a [Lease] of a Memory. The lock of its stripe guards key.
//
// Leases are not pooled: a second Release, long after the first, must not release somebody
// else's. They are allocated by the dozen, which costs little beside the lock.
type lease struct {
	stripe *stripe
	key    *keyState // nil once released
	n      int64
	since  time.Duration
}

const leasesAtOnce = 16

// grant takes n free permits.
func (st *stripe) grant(k *keyState, n int64, now time.Duration) *lease {
	if len(st.leases) == 0 {
		st.leases = make([]lease, leasesAtOnce)
	}
	l := &st.leases[0]
	st.leases = st.leases[1:]
	*l = lease{stripe: st, key: k, n: n, since: now}
	k.held += n
	st.stats.Held += n
	st.stats.Admitted++
	return l
}

// Release implements [Lease].
func (l *lease) Release() {
	st := l.stripe
	now := st.now()
	st.mu.Lock()
	defer st.mu.Unlock()
	if l.key == nil {
		return
	}
	l.key.returned(max(now-l.since, 0))
	st.giveBack(l, now)
}

// returned updates the mean by an eighth of the time that a lease was held, as TCP does with
// round trips (RFC 6298).
func (k *keyState) returned(held time.Duration) {
	if k.mean == 0 {
		k.mean = max(held, 1)
		return
	}
	k.mean = max(k.mean+(held-k.mean)/8, 1)
}

// giveBack takes back a lease's permits and serves the waiters.
func (st *stripe) giveBack(l *lease, now time.Duration) {
	k := l.key
	l.key = nil
	k.held -= l.n
	st.stats.Held -= l.n
	st.serve(k, now)
	if k.held == 0 {
		st.drop(k)
	}
}
