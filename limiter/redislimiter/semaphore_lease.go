package redislimiter

import (
	"time"

	"github.com/hotparam/hotparam/limiter/semaphore"
)

var _ semaphore.Lease = (*Lease)(nil)

// Lease is permits of a [Semaphore] that are held. It is a [semaphore.Lease].
type Lease struct {
	semaphore *Semaphore
	key       string // in Redis
	member    string // in Redis: "permits process/number"
	since     time.Time
	lost      chan struct{}

	until time.Time // Redis keeps it until then at least; guarded by the semaphore's lock
}

// Release gives the permits back in one round trip, or later if Redis does not answer. Only
// the first call has an effect. It may be called from any goroutine.
func (l *Lease) Release() {
	if l.semaphore.drop(l) {
		l.semaphore.release(l)
	}
}

// Lost is closed when the permits may have been granted to somebody else: they could not be
// renewed in time, Redis has lost them, or Run has ended. A holder that uses them as a lock
// should stop then; one that only shares load may go on. It is closed a little before Redis
// drops the lease, unless this process was suspended.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// keep records that the lease is held.
func (s *Semaphore) keep(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[l] = struct{}{}
	s.stats.Granted++
}

// drop records that the lease is no longer held, and reports whether it was: it may have been
// lost or released before.
func (s *Semaphore) drop(l *Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := s.held[l]; !held {
		return false
	}
	delete(s.held, l)
	// A moving average; a concurrent write that is lost does not matter.
	s.hold.Store(s.hold.Load() - s.hold.Load()/8 + int64(min(time.Since(l.since), time.Hour))/8)
	return true
}

// owe records that Redis may have a lease that nobody holds.
func (s *Semaphore) owe(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oweLocked(l)
}

func (s *Semaphore) oweLocked(l *Lease) {
	if len(s.owed) < maxOwed {
		s.owed[l] = struct{}{}
	}
}
