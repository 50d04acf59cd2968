package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Bounds of a wait.
const (
	maxWait = rules.MaxPenalty // longest wait without a deadline, and farthest reservation
	minNap  = time.Millisecond // shortest time between two asks, for backends that cannot reserve
)

// Wait takes one permit of the key and returns when it may be used: see WaitN.
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN takes n permits of the key and returns when they may be used. It fails at once with a
// [*DeniedError] if that would be after the deadline of ctx, or never. It fails with the error
// of ctx when ctx ends. A call that fails takes nothing. But if ctx ends while a remote backend
// is being asked, it is unknown whether the permits were taken.
//
// Callers of a process are served in order. The place of a caller whose ctx ends passes to the
// next: see [WaitLines], which the copies of a Limiter that With makes share. If a key is
// locked, a backend cannot reserve, or a queue (a leaky bucket that shapes) has no free place,
// the first in line asks again when that can pass.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.lines.mayJoin(l.memory == nil) && l.quota.Load() != nil {
		if w, d, joined := l.lines.Join(ctx, l.claim(ctx, l.op(key, Request{N: n}))); joined {
			d.Rule = l.name
			return w.wait(ctx, d)
		}
	}
	op := l.op(key, Request{Kind: Reserve, N: n, Within: timeLeft(ctx)})
	var res Result
	err := l.do(ctx, &op, &res)
	if errors.Is(err, ErrUnsupported) {
		op.Kind, op.Within = Take, 0
		err = l.do(ctx, &op, &res)
	}
	if err != nil || res.Allowed && res.Delay <= 0 {
		return err
	}
	return l.waitWith(ctx, op, &res)
}

// waitWith waits for the permits that an ask reserved, or for the end of its denial.
func (l *Limiter) waitWith(ctx context.Context, op Op, res *Result) error {
	left := timeLeft(ctx)
	switch {
	case res.Allowed && res.Delay > left: // the ask itself took too long
		d := res.Decision
		d.Allowed, d.Reason, d.Delay, d.RetryAfter = false, rules.ReasonLimited, 0, d.Delay-left
		h := heldPermits{from: opAsker{l, op}, res: *res, n: op.N}
		if err := giveBackAll(ctx, []heldPermits{h}); err != nil {
			return errors.Join(&DeniedError{d}, err)
		}
		return &DeniedError{d}
	case res.Allowed:
	case op.Kind == Reserve && res.Reason != rules.ReasonLocked && !inTime(&op, res, left),
		res.RetryAfter <= 0, res.RetryAfter > left:
		return &DeniedError{res.Decision}
	}
	w, d := l.lines.Stand(l.claim(ctx, op), res)
	d.Rule = l.name
	return w.wait(ctx, d)
}

// claim returns the claim of a caller of WaitN.
func (l *Limiter) claim(ctx context.Context, op Op) *WaitClaim {
	until, _ := ctx.Deadline()
	return &WaitClaim{
		Key: WaitKey{Key: op.Key}, Asker: opAsker{l, op}, Quota: op.Quota, N: op.N, Until: until,
		Remote: l.memory == nil, Patient: true,
	}
}

// opAsker asks for permits of the key of an Op.
type opAsker struct {
	limiter *Limiter
	op      Op
}

func (a opAsker) Do(ctx context.Context, ask Request) (res Result, err error) {
	op := a.op
	op.Request = ask
	err = a.limiter.do(ctx, &op, &res)
	return res, err
}

// inTime reports whether a queue only lacks a place, so that the turn of a place after the
// whole queue is within the time left.
func inTime(op *Op, res *Result, left time.Duration) bool {
	return op.Quota.Shape && res.ResetAfter <= left
}

// timeLeft returns how long a wait may last.
func timeLeft(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(max(time.Until(deadline), 0), maxWait)
	}
	return maxWait
}
