package limiter

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam"
)

// Semaphore bounds how many are at work at a time, for each of many keys: slow calls,
// connections, workers. It is safe for concurrent use. In memory it is
// [MemorySemaphore]; package redislimiter has one that many instances share.
type Semaphore interface {
	// Acquire takes ask.N of the key's permits, waiting for them for ask.Within at
	// most. Who is denied gets no Lease, and [hotparam.ReasonBusy]: RetryAfter is then
	// an estimate, since nobody knows how long the others work, or 0 if there never
	// are as many permits. Remaining is how many permits are free.
	//
	// An error means that nothing was taken: the arguments are wrong, the context has
	// ended, or it is not known who holds what.
	Acquire(ctx context.Context, key string, ask SemaphoreAsk) (Lease, hotparam.Decision, error)
}

// SemaphoreAsk is what an Acquire wants. That Permits and Queue are part of it makes a
// reload simple: what the last one asked holds for the key.
type SemaphoreAsk struct {
	// Permits is how many there are in all, at least 1. A changed number takes effect
	// at once: with more, those who wait are served; with fewer, nobody is until enough
	// are back. Leases stay with whom they are.
	Permits int64
	// Queue is how many may wait; who comes beyond it is denied at once.
	Queue int
	// N is how many permits are taken, at least 1. More than Permits are denied.
	N int64
	// Class tells who comes first in the line: 0 before 1, and so on up to
	// [hotparam.MaxClasses]-1. Within a class those come first who came first.
	Class int
	// Within is the longest wait; 0: none.
	Within time.Duration
}

// Lease is permits that are held.
type Lease interface {
	// Release gives the permits back. Only the first call does; it may come from any
	// goroutine. Defer it, so that a panic keeps no permit.
	Release()
}

func (a *SemaphoreAsk) validate(key string) error {
	switch {
	case key == "":
		return ErrNoKey
	case a.Permits < 1:
		return fmt.Errorf("limiter: semaphore of %d permits: must be at least 1", a.Permits)
	case a.N < 1:
		return fmt.Errorf("limiter: %d permits of a semaphore: must be at least 1", a.N)
	}
	return nil
}
