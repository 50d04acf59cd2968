package semaphore

import "time"

// lease is a [Lease] of a Memory. The lock of its stripe guards n.
//
// Leases are not pooled: a second Release, long after the first, must not release somebody
// else's. They are allocated by the dozen, which costs little beside the lock.
type lease struct {
	key   *keyState     // fixed
	n     int64         // 0 once released
	since time.Duration // fixed; untimed: it is not timed
}

const untimed = -1

const leasesAtOnce = 32

// timedOf is of how many leases one is timed of a key that nobody was denied: to read the clock
// twice would cost more than all the rest, to be told to those who are denied.
const timedOf = 32

// grant takes n free permits.
func (st *stripe) grant(k *keyState, n int64) *lease {
	if len(st.leases) == 0 {
		st.leases = make([]lease, leasesAtOnce)
	}
	l := &st.leases[0]
	st.leases = st.leases[1:]
	l.key, l.n, l.since = k, n, untimed
	if st.grants++; k.mean == 0 || k.contended || st.grants%timedOf == 0 {
		l.since = st.now()
		if k.held == 0 {
			k.since = l.since
		}
	}
	k.held += n
	st.stats.Held += n
	st.stats.Admitted++
	return l
}

// Release implements [Lease].
func (l *lease) Release() {
	st, held := l.key.stripe, time.Duration(untimed)
	if l.since != untimed {
		held = max(st.now()-l.since, 0)
	}
	st.mu.Lock() // no defer: as in acquire
	if l.n > 0 {
		if held != untimed {
			l.key.returned(held)
		}
		st.giveBack(l)
	}
	st.mu.Unlock()
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
func (st *stripe) giveBack(l *lease) {
	k := l.key
	k.held -= l.n
	st.stats.Held -= l.n
	l.n = 0
	if k.line != nil {
		st.serve(k)
	}
	if k.held == 0 {
		st.rest(k)
	}
}
