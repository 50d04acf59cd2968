package semaphore

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Memory is an [Acquirer] in memory. A key takes memory only while its permits are held; the last
// thousand keys are kept for a while longer. So the keys are bounded by the requests in flight. It
// starts no goroutine: callers wait in their own.
//
// The queue is fair: a released permit is handed to the next waiter instead of being raced for, so
// no caller takes a permit while another waits, and no wake-up is lost.
//
// An Unfair Memory serves the newest of a class first. That is for overload. The oldest callers in a
// full queue are about to give up, and none of them is served in time, while the newest can
// still be served well (adaptive LIFO: Maurer, "Fail at Scale", ACM Queue 13(8), 2015). Without
// overload the queue is empty and the order does not matter.
type Memory struct {
	unfair   bool
	draining atomic.Bool // written before, and read under, each stripe's lock
	start    time.Time
	seed     maphash.Seed
	stripes  [stripeCount]stripe
}

// Config configures a [Memory]. The zero value is valid.
type Config struct {
	// Unfair serves the newest waiter first.
	Unfair bool
}

// drainRetry is the RetryAfter of a denial during a drain, whose length is unknown.
const drainRetry = time.Second

// New returns a Memory. It starts nothing.
func New(c Config) *Memory {
	s := &Memory{unfair: c.Unfair, start: time.Now(), seed: maphash.MakeSeed()}
	for i := range s.stripes {
		s.stripes[i].semaphore = s
	}
	return s
}

// Acquire implements [Acquirer]. It allocates nothing for a key whose permits are held, or were
// lately.
func (s *Memory) Acquire(ctx context.Context, key string, ask Request) (held Lease, d rules.Decision, err error) {
	if !ask.isValid(key) {
		return Lease{}, rules.Decision{}, ask.validate(key)
	}
	if err := ctx.Err(); err != nil {
		return Lease{}, rules.Decision{}, err
	}
	ask.Class = min(max(ask.Class, 0), rules.MaxClasses-1)
	st := &s.stripes[maphash.String(s.seed, key)%stripeCount]
	l, w := st.acquire(key, &ask, &d)
	if w != nil {
		if l, d, err = st.wait(ctx, w, &ask); err != nil {
			return Lease{}, rules.Decision{}, err
		}
	}
	if l != nil {
		held = Lease{l, l.id}
	}
	return held, d, nil
}

// Drain denies all waiters and newcomers until Resume, on overload or before a shutdown. Held
// leases stay valid; Stats reports their permits.
func (s *Memory) Drain() {
	s.draining.Store(true)
	for i := range s.stripes {
		s.stripes[i].drain()
	}
}

// Resume ends a Drain.
func (s *Memory) Resume() { s.draining.Store(false) }

// Stats is a snapshot of the held permits.
type Stats struct {
	Keys    int64 // keys with held permits
	Held    int64 // permits
	Waiting int64
}

// Stats returns a snapshot, taken of one stripe of keys after the other.
func (s *Memory) Stats() Stats {
	var all Stats
	for i := range s.stripes {
		s.stripes[i].addTo(&all)
	}
	return all
}
