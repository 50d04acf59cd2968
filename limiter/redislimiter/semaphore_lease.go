package redislimiter

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter/semaphore"
)

var _ semaphore.Holder = (*heldLease)(nil)

// heldLease is a held permit of a [Semaphore]. It is the [semaphore.Holder] of one
// lease, or, if it is kept, of one after the other. The id is its use.
type heldLease struct {
	semaphore *Semaphore
	key       string    // name of the key in Redis
	member    string    // member in Redis: "process/number"
	granted   time.Time // time when Redis was asked for it
	since     time.Time // time from which its request has it
	lost      chan struct{}
	until     atomic.Pointer[time.Time] // time until which Redis keeps it at least

	state   *semaphoreState // its key if it is kept, else nil; fixed, as is permits
	permits int64           // number of permits of the key when it was granted

	// The lock of the state's stripe guards these.
	use  uint64    // number of requests that had it before
	used bool      // whether a request has it
	keep time.Time // time until which it may be left to another request
	idle time.Time // time from which it is a spare
}

// hasEnded reports whether the permits may have been granted to another caller.
func (l *heldLease) hasEnded(now time.Time) bool {
	select {
	case <-l.lost:
		return true
	default:
		return !isBefore(now, *l.until.Load())
	}
}

// Release implements [semaphore.Holder]. It leaves a kept lease to this process's next request.
// Otherwise it releases the permits in one round trip, or later if Redis does not answer.
func (l *heldLease) Release(use uint64) {
	if l.state != nil && l.semaphore.passOn(l, use) {
		return
	}
	if l.semaphore.recordDropped(l) {
		l.semaphore.release(l)
	}
}

// Lost implements [semaphore.Holder]. The permits may have been granted to another caller if they
// could not be renewed in time, Redis has lost them, or Run has ended. The channel is closed a
// little before Redis drops the lease, unless this process was suspended.
func (l *heldLease) Lost(uint64) <-chan struct{} { return l.lost }

// recordHeld records that the lease is held.
func (s *Semaphore) recordHeld(l *heldLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[l] = struct{}{}
	s.stats.Granted++
}

// recordDropped records that the lease is no longer held, and reports whether it was: it may have
// been lost or released before.
func (s *Semaphore) recordDropped(l *heldLease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := s.held[l]; !held {
		return false
	}
	delete(s.held, l)
	// A moving average; the loss of a concurrent write does not matter.
	s.hold.Store(s.hold.Load() - s.hold.Load()/8 + int64(min(time.Since(l.since), time.Hour))/8)
	return true
}

// addOwed records that Redis may have a lease that no one holds.
func (s *Semaphore) addOwed(l *heldLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addOwedLocked(l)
}

func (s *Semaphore) addOwedLocked(l *heldLease) {
	if len(s.owed) < maxOwed {
		s.owed[l] = struct{}{}
	}
}
