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

	until time.Time // Redis keeps it so long at least, by all that is known; guarded by the semaphore's lock
}

// Release gives the permits back, in one round trip; a Redis that does not answer gets
// them later. Only the first call does anything. It may come from any goroutine.
func (l *Lease) Release() {
	if l.semaphore.drop(l) {
		l.semaphore.release(l)
	}
}

// Lost is closed when the permits may be somebody else's: they could not be renewed in
// time, Redis has lost them, or Run has ended. Who holds them for the sake of somebody
// else, as a lock, should stop then; who only shares a load may go on. It is told a
// little before Redis forgets them, unless this process stood still.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// keep notes that the lease is held.
func (s *Semaphore) keep(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[l] = struct{}{}
	s.stats.Granted++
}

// drop notes that the lease is held no longer; false: it was not, being lost or released.
func (s *Semaphore) drop(l *Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := s.held[l]; !held {
		return false
	}
	delete(s.held, l)
	// A moving average; what two write at once does not matter.
	s.hold.Store(s.hold.Load() - s.hold.Load()/8 + int64(min(time.Since(l.since), time.Hour))/8)
	return true
}

// owe notes that Redis may have a lease which nobody holds.
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
