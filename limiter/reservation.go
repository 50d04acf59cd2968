package limiter

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Reservation is what a Reserve came to: permits that may be used after its Delay, if
// it is Allowed. It is for one goroutine at a time, and not copied once Cancel may be
// called.
type Reservation struct {
	rules.Decision
	backend Backend
	op      Op // a Return of what was taken
}

func newReservation(backend Backend, op Op, res Result) Reservation {
	op.Ask = res.Return()
	return Reservation{Decision: res.Decision, backend: backend, op: op}
}

// Cancel gives back what has not been earned or left its window since, for a request
// that will not be made. The second time it does nothing, whatever came of the first:
// what may have been given back is not given back again.
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

// graceTime bounds what is given back for a caller whose own context may be over.
const graceTime = time.Second

// grace is a context for giving back: it outlives the caller's, by a bounded time.
func grace(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), graceTime)
}
