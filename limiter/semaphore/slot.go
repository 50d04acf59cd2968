package semaphore

import "time"

// slot is the place where a [Memory] keeps a lease. It is the lease's [Holder], and keeps
// another lease after that one was released. The lock of its stripe guards all fields but the
// stripe.
type slot struct {
	stripe *stripe // fixed
	key    *keyState
	used   bool          // whether it keeps a lease
	since  time.Duration // start of the lease, if it is timed
	id     uint64        // id of the latest lease: never the same twice, odd if it is timed
	next   *slot         // next slot in the list of free ones
}

// timedEvery is the sampling interval of lease durations: one of timedEvery leases is timed while the
// key has denied no caller. Reading the clock twice would cost more than the rest of an
// acquire, for an estimate that only denied callers get.
const timedEvery = 32

// maxFreeSlots is the maximum number of free slots that a stripe keeps. A burst of leases
// beyond them is left to the garbage collector.
const maxFreeSlots = 64

// grant takes a free permit.
func (st *stripe) grant(k *keyState) *slot {
	s := st.free
	if s != nil {
		st.free = s.next
		st.freeSlots--
	} else {
		s = &slot{stripe: st}
	}
	s.key, s.used = k, true
	s.id = (s.id | 1) + 1
	if st.grants++; k.mean == 0 || k.contended || st.grants%timedEvery == 0 {
		s.id |= 1
		s.since = st.now()
		if k.held == 0 {
			k.since = s.since
		}
	}
	k.held++
	st.stats.Held++
	return s
}

// Release implements [Holder].
func (s *slot) Release(id uint64) {
	st, now := s.stripe, time.Duration(0)
	if id&1 == 1 {
		now = st.now()
	}
	st.mu.Lock() // no defer, as in acquire
	if s.id == id && s.used {
		if id&1 == 1 {
			s.key.recordDuration(max(now-s.since, 0))
		}
		st.giveBack(s)
	}
	st.mu.Unlock()
}

// Lost implements [Holder].
func (s *slot) Lost(uint64) <-chan struct{} { return nil }

// recordDuration updates the mean by an eighth of the difference to the time that a lease was held,
// as TCP does with round trips (RFC 6298).
func (k *keyState) recordDuration(held time.Duration) {
	if k.mean == 0 {
		k.mean = max(held, 1)
		return
	}
	k.mean = max(k.mean+(held-k.mean)/8, 1)
}

// giveBack releases a lease's permit and serves the next waiter.
func (st *stripe) giveBack(s *slot) {
	k := s.key
	k.held--
	st.stats.Held--
	s.used, s.key = false, nil
	if st.freeSlots < maxFreeSlots {
		s.next, st.free = st.free, s
		st.freeSlots++
	}
	st.serve(k)
	if k.held == 0 {
		st.markIdle(k)
	}
}
