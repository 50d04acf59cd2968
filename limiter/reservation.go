package limiter

import (
	"context"

	"github.com/hotparam/hotparam"
)

// Reservation is what a Reserve came to: permits that may be used after its Delay, if
// it is Allowed.
type Reservation struct {
	hotparam.Decision
	backend Backend
	op      Op // a Return of what was taken
}

// Cancel gives back what has not been earned or left its window since, for a request
// that will not be made. The second time it does nothing.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r.op.N == 0 {
		return nil
	}
	op := r.op
	r.op.N = 0
	_, err := r.backend.Do(ctx, op)
	return err
}
