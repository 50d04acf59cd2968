package limiter

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Reservation is the result of a Reserve: permits that may be used after its Delay, if it is
// Allowed. It is for one goroutine at a time, and must not be copied once Cancel may be called.
type Reservation struct {
	rules.Decision
	backend Backend
	op      Op // a Return of the permits taken
}

func newReservation(backend Backend, op Op, res Result) Reservation {
	op.Request = res.Return()
	return Reservation{Decision: res.Decision, backend: backend, op: op}
}

// Cancel returns the permits that have not been earned or left their window since, for a
// request that will not be made. A second call does nothing, whatever the outcome of the first:
// permits that may have been returned are not returned twice.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r.op.N == 0 {
		return nil
	}
	op := r.op
	r.op.N = 0
	if _, err := r.backend.Do(ctx, op); err != nil {
		return fmt.Errorf("limiter %q: return permits: %w", op.Name, err)
	}
	return nil
}

// graceTime bounds the return of permits for a caller whose own context may have ended.
const graceTime = time.Second

// grace returns a context for returning permits. It outlives the caller's, by a bounded time.
func grace(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), graceTime)
}
