package semaphore

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Acquirer bounds the requests in flight, for each of many keys. It is safe for
// concurrent use. [Memory] keeps the permits in this process; package redislimiter has
// one that all instances share.
type Acquirer interface {
	// Acquire takes one of the key's permits. It waits for it for at most ask.Within. If it is
	// denied, the Lease is zero and the reason is [rules.ReasonBusy]. RetryAfter is then an
	// estimate, since the holders' remaining time is unknown. Remaining is the number of free
	// permits.
	//
	// An error means that nothing was taken: the arguments are wrong, the context has ended, or
	// it is unknown who holds the permits. An empty key is [limiter.ErrNoKey].
	Acquire(ctx context.Context, key string, ask Request) (Lease, rules.Decision, error)
}

// Request is the request of an Acquire. Permits and Queue are part of it, so that a reload needs no
// call of its own: the latest Request holds for the key.
type Request struct {
	// Permits is the number of permits of the key, at least 1. A changed number takes effect at
	// once: with more, waiters are served; with fewer, none is served until enough permits are
	// released. Leases that are held stay valid.
	Permits int64
	// Queue is the number of callers that may wait; a caller beyond it is denied at once.
	Queue int
	// Class is the priority in the queue: 0 comes before 1, and so on up to
	// [rules.MaxClasses]-1. Within a class the first to come is the first served.
	Class int
	// Within is the longest wait. Zero means no wait.
	Within time.Duration
	// Keep lets an Acquirer whose permits several processes share keep a released permit for a
	// moment, for this process's next ask that sets Keep. Such asks then need no call. Until it is
	// returned, such a permit is missing elsewhere. It has no effect on [Memory].
	Keep bool
}

// isValid reports whether validate returns nil. It is separate to be inlined.
func (a *Request) isValid(key string) bool { return key != "" && a.Permits >= 1 }

func (a *Request) validate(key string) error {
	switch {
	case key == "":
		return limiter.ErrNoKey
	case a.Permits < 1:
		return fmt.Errorf("semaphore: %d permits: must be at least 1", a.Permits)
	}
	return nil
}
