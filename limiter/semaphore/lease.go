package semaphore

import "time"

// lease is a [Lease] of a Memory. The lock of its stripe guards key.
//
// Leases are not pooled: somebody may release one a second time, long after, and must
// not release another's. They are made by the dozen, since each is small: what they
// cost beside the lock is not seen.
type lease struct {
	stripe *stripe
	key    *keyState // nil: released
	n      int64
	since  time.Duration
}

const leasesAtOnce = 16

// grant takes n permits, which are free.
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

// Release is [Lease].Release.
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

// returned learns from a lease that was held for so long: the mean moves by an eighth,
// as that of TCP's round trips does (RFC 6298).
func (k *keyState) returned(held time.Duration) {
	if k.mean == 0 {
		k.mean = max(held, 1)
		return
	}
	k.mean = max(k.mean+(held-k.mean)/8, 1)
}

// giveBack takes back a lease's permits and hands them to those who wait.
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
