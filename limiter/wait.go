package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/hotparam/hotparam"
)

// Bounds of a wait.
const (
	maxWait = hotparam.MaxPenalty // without a deadline; nothing is reserved further ahead
	minNap  = time.Millisecond    // between two asks, for backends that cannot reserve
)

// Wait takes one permit of the key and returns when it may be used: see WaitN.
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN takes n permits of the key and returns when they may be used. It fails at once with
// a [*DeniedError] if that would be after the deadline of ctx, or never, and with the error
// of ctx when that ends: then nothing was taken. If ctx ends while a remote backend is being
// asked it is unknown whether the permits were taken.
//
// The permits are reserved at once, so callers are served in order, with one timer each. There
// is no order for a key that is locked, a backend that cannot reserve, or a queue (a leaky
// bucket that shapes) without a free place: WaitN then asks again when a retry can pass.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	kind := Reserve
	for {
		op := l.op(key, Ask{Kind: kind, N: n})
		if kind == Reserve {
			op.Within = timeLeft(ctx)
		}
		var res Result
		err := l.do(ctx, &op, &res)
		switch {
		case kind == Reserve && errors.Is(err, ErrUnsupported):
			kind = Take
			continue
		case err != nil:
			return err
		case res.Allowed:
			r := newReservation(l.backend, op, res)
			return r.wait(ctx)
		case kind == Reserve && res.Reason != hotparam.ReasonLocked && !inTime(&op, &res, timeLeft(ctx)),
			res.RetryAfter <= 0, res.RetryAfter > timeLeft(ctx):
			return &DeniedError{res.Decision}
		}
		if err := sleep(ctx, max(res.RetryAfter, minNap)); err != nil {
			return err
		}
	}
}

// inTime reports whether a queue only lacks a place: the turn that comes with it, after all
// that are in it, is within what is left.
func inTime(op *Op, res *Result, left time.Duration) bool {
	return op.Quota.Shape && res.ResetAfter <= left
}

// wait returns when the reserved permits may be used, or gives them back.
func (r *Reservation) wait(ctx context.Context) error {
	if r.Delay <= 0 {
		return nil
	}
	var err error
	if left := timeLeft(ctx); r.Delay > left { // the ask itself took too long
		d := r.Decision
		d.Allowed, d.Reason, d.Delay, d.RetryAfter = false, hotparam.ReasonLimited, 0, d.Delay-left
		err = &DeniedError{d}
	} else if err = sleep(ctx, r.Delay); err == nil {
		return nil
	}
	ctx, cancel := grace(ctx)
	defer cancel()
	if failed := r.Cancel(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// timeLeft returns how long a wait may last.
func timeLeft(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(max(time.Until(deadline), 0), maxWait)
	}
	return maxWait
}

// sleep returns nil after d, or the context's error. If both are due it returns nil.
func sleep(ctx context.Context, d time.Duration) error {
	due := time.Now().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		if !time.Now().Before(due) {
			return nil
		}
		return ctx.Err()
	}
}
