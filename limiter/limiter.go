package limiter

import (
	"context"
	"time"

	"github.com/hotparam/hotparam"
)

// Limiter holds each of many keys to one quota, whatever the backend. It is safe for
// concurrent use. Where one knows of no error, such as in memory, err is of the
// arguments or the context alone.
type Limiter interface {
	// Take takes n permits of the key if there are as many, else none.
	Take(ctx context.Context, key string, n int64) (hotparam.Decision, error)
	// Peek is the decision that Take would come to. It takes nothing, and Remaining is
	// what there is.
	Peek(ctx context.Context, key string, n int64) (hotparam.Decision, error)
	// AllowAtMost takes as many permits as there are, at most n, and tells how many.
	AllowAtMost(ctx context.Context, key string, n int64) (int64, hotparam.Decision, error)
	// Reserve takes n permits that may be used after Decision.Delay, at most within.
	Reserve(ctx context.Context, key string, n int64, within time.Duration) (Reservation, error)
	// Wait takes n permits and returns when they may be used. It fails at once with a
	// [*DeniedError] if that would be after the context's deadline, or never; and with
	// the context's error when it ends: then nothing was taken.
	Wait(ctx context.Context, key string, n int64) error
	// Charge takes n permits, whether there are as many or not.
	Charge(ctx context.Context, key string, n int64) error
	// Reset makes the key as new.
	Reset(ctx context.Context, key string) error
}
