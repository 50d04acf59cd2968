package onhot

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// entry is a stored answer, or the memory that a key's answers are not for sharing.
type entry struct {
	answer *Answer // nil if they are not
	reason Reason  // why they are not
	until  time.Time
	stamp  stamp
	cost   uint32 // bytes
	// retry is the age in nanoseconds before which the answer is not refreshed, after a failure.
	retry atomic.Int64
}

// entryCost is the memory of an entry without its key and its answer, in bytes. The costs of
// otter and of the header's map are estimated.
const entryCost = 768

// result returns what a request receives of the entry, and whether it should be refreshed. The
// result is empty if the entry, which may be nil, does not answer the request.
func (e *entry) result(d demand, now time.Time) (res Result, refresh bool) {
	switch {
	case e == nil || !now.Before(e.until):
		return Result{}, false
	case e.answer == nil:
		return Result{How: Alone, Reason: e.reason}, false
	}
	kept := now.Sub(e.answer.received)
	left := e.answer.terms.fresh - kept
	switch {
	case d.bounded && (e.answer.age+kept).Truncate(time.Second) > d.maxAge, left < d.minFresh && d.minFresh > 0:
		return Result{}, false
	case left > 0:
		return Result{How: Hit, answer: e.answer, at: now}, false
	case d.bounded: // it has not said that it takes a stale one
		return Result{}, false
	}
	return Result{How: Stale, answer: e.answer, at: now}, int64(kept) >= e.retry.Load()
}

// store holds entries up to a number of bytes.
//
// Otter evicts after it has inserted, and returns from a write before that. So each put is
// followed by a clean-up, and the caller accounts for the entry until put has returned. Otter's
// own goroutine is not used: expired entries leave with the next put, or when sweep finds that
// there was none.
type store struct {
	entries *otter.Cache[string, *entry]

	mu     sync.Mutex  // of writes
	sweep  *time.Timer // nil before the first entry
	closed bool
}

// newStore returns a store of at most size bytes.
func newStore(size int64) (*store, error) {
	entries, err := otter.New(&otter.Options[string, *entry]{
		MaximumWeight: uint64(size),
		Weigher:       func(_ string, e *entry) uint32 { return e.cost },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, *entry]) time.Duration {
			return time.Until(e.Value.until)
		}),
		Executor: func(f func()) { f() },
		Clock:    untickedClock{time.Now()},
	})
	return &store{entries: entries}, err
}

// untickedClock is a monotonic clock for otter that lets it clean up when it is called only.
type untickedClock struct{ start time.Time }

func (c untickedClock) NowNano() int64                    { return int64(time.Since(c.start)) }
func (untickedClock) Tick(time.Duration) <-chan time.Time { return nil }

// get returns the entry of a key, unless it has expired.
func (s *store) get(key string) *entry {
	e, _ := s.entries.GetIfPresent(key)
	return e
}

// put stores an entry until its end.
func (s *store) put(key string, e *entry, now time.Time) {
	cost := len(key) + entryCost
	if e.answer != nil {
		cost += cap(e.answer.body) + int(headerBytes(e.answer.header))
	}
	e.cost = uint32(cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.entries.Set(key, e)
	s.entries.CleanUp()
	s.sweepAfter(e.until.Sub(now) + time.Second)
}

// sweepAfter lets sweepExpired run later. The caller holds the lock.
func (s *store) sweepAfter(d time.Duration) {
	if s.sweep == nil {
		s.sweep = time.AfterFunc(d, s.sweepExpired)
		return
	}
	s.sweep.Reset(d)
}

func (s *store) sweepExpired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries.CleanUp()
	if !s.closed && s.entries.EstimatedSize() > 0 {
		s.sweepAfter(time.Second)
	}
}

func (s *store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.sweep != nil {
		s.sweep.Stop()
	}
	s.entries.InvalidateAll()
	s.entries.StopAllGoroutines()
}
