package limiter

import (
	"context"

	"github.com/hotparam/hotparam/rules"
)

// Alone decides an op as if the primary were unavailable. It is for ops that the primary cannot
// decide, such as one for which it returns [ErrUnsupported].
func (f *Failover) Alone(ctx context.Context, op Op) (Result, error) {
	if op.Name == "" || op.Key == "" {
		return Result{}, ErrNoKey
	}
	step, op := stepOf(op)
	return f.decide(ctx, op, step)
}

// decide decides without the primary. step identifies the backend that took the permits of a
// Return.
func (f *Failover) decide(ctx context.Context, op Op, step path) (Result, error) {
	switch step {
	case pathHere: // the permits were taken locally, whatever f.outage is now
		return f.markLocal(f.local.Do(ctx, f.shares.withShare(op, f.instances())))
	case pathNobody:
		op.N = min(op.N, 0) // nothing was taken, so nothing is returned; an N below 0 is still refused
	}
	switch f.outage {
	case rules.OutageOpen:
		f.asOpen.Add(1)
		if op.N < 0 && op.Kind != Forget { // as every backend does
			return f.refused(ctx, op, rules.ReasonLimited), nil
		}
		res := Result{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonOpen}}
		if op.Kind == Take || op.Kind == AtMost || op.Kind == Reserve {
			res.Taken, res.Receipt.path = op.N, pathNobody
		}
		return res, nil
	case rules.OutageClosed:
		f.asClosed.Add(1)
		switch {
		case op.N < 0 && op.Kind != Forget: // as every backend does
			return f.refused(ctx, op, rules.ReasonLimited), nil
		case isDeniable(op):
			return f.refused(ctx, op, rules.ReasonUnavailable), nil
		}
		return Result{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonUnavailable}}, nil
	}
	f.asLocal.Add(1)
	return f.decideLocally(ctx, op)
}

// markLocal records in res that the local backend took its permits.
func (f *Failover) markLocal(res Result, err error) (Result, error) {
	if res.Taken > 0 {
		res.Receipt.path = res.Receipt.path.via(pathHere)
	}
	return res, err
}

// isDeniable reports whether ops of this kind can be denied for lack of permits.
func isDeniable(op Op) bool {
	return op.Kind == Take || op.Kind == Peek || op.Kind == AtMost || op.Kind == Reserve
}

// decideLocally asks the local backend, by the instance's part of the quota.
func (f *Failover) decideLocally(ctx context.Context, op Op) (Result, error) {
	if op.Kind == Return {
		return f.returnLocally(ctx, op)
	}
	res, err := f.local.Do(ctx, f.shares.withShare(op, f.instances()))
	return f.localResult(ctx, op, res, err)
}

// localResult converts the local backend's result for the instance's part to the result of op.
func (f *Failover) localResult(ctx context.Context, op Op, res Result, err error) (Result, error) {
	res, err = f.markLocal(res, err)
	if isDeniable(op) && err == nil && !res.Allowed && res.RetryAfter == 0 && isAllowable(op) {
		res.Decision = f.refused(ctx, op, rules.ReasonUnavailable).Decision // op asks for more than the part ever has
	}
	return res, err
}

// isAllowable reports whether the whole quota can ever allow op.
func isAllowable(op Op) bool {
	return op.Quota != nil && op.N >= 0 && op.N <= op.Quota.Burst && op.Keep <= op.Quota.Burst-op.N
}

// refused returns a denial. With ReasonUnavailable it ends at the next probe; with other reasons it
// is permanent.
func (f *Failover) refused(ctx context.Context, op Op, reason rules.Reason) Result {
	d := rules.Decision{Reason: reason}
	if op.Quota != nil {
		d.Limit = op.Quota.Burst
	}
	if reason == rules.ReasonUnavailable {
		d.RetryAfter = max(f.breakers.UntilProbe(""), f.breakers.UntilProbe(nodeOf(ctx, f.primary, op)), f.minProbe)
	}
	return Result{Decision: d}
}

// mirrorLocally repeats the primary's result on the local backend, so that an outage begins there
// with neither a fresh burst nor a debt. It takes the granted permits, as far as the local backend
// has them, and more if the rest would exceed this instance's part of what the primary has left.
// A denial is mirrored too, since other instances took the permits.
//
// mirrorLocally returns how many of res.Taken it took; see overdrawn for the rest. Where nothing is
// to be settled, it returns res.Taken. Errors are ignored, since an outage asks again.
func (f *Failover) mirrorLocally(ctx context.Context, op Op, res Result) int64 {
	instances := int64(max(f.instances(), 1))
	switch {
	case f.outage == rules.OutageOpen || f.outage == rules.OutageClosed || op.Kind == Peek:
		return res.Taken
	case op.Kind == Forget:
		_, _ = f.local.Do(ctx, f.shares.withShare(op, int(instances)))
		return res.Taken
	case op.Kind == Return:
		_, _ = f.returnLocally(ctx, op)
		return res.Taken
	// Nothing to mirror: no limit, or a denial that does not show what other instances took.
	case res.Limit < 1 || res.Taken < 1 && (instances == 1 || res.Reason != rules.ReasonLimited || res.RetryAfter == 0):
		return res.Taken
	}
	op.Request = Request{Kind: Peek}
	op = f.shares.withShare(op, int(instances))
	there, err := f.local.Do(ctx, op)
	n := min(there.Remaining, max(res.Taken, there.Remaining-res.Remaining/instances))
	if err != nil || n < 1 {
		return 0
	}
	op.Request = Request{Kind: AtMost, N: n}
	if op.Quota.Penalty > 0 || op.Quota.CountDenied { // a denial would leave a trace
		op.Kind = Charge
	}
	got, err := f.local.Do(ctx, op)
	if err != nil {
		return 0
	}
	return got.Taken
}

// returnLocally gives permits that the primary granted back to the local backend. The Mark of the
// take by mirrorLocally is not kept. A bucket needs none. A window would, so there the permits stay
// taken.
func (f *Failover) returnLocally(ctx context.Context, op Op) (Result, error) {
	if op.Quota != nil && op.Quota.Algorithm.Windowed() {
		op.N = min(op.N, 0)
	}
	op.Mark, op.Receipt = 0, Receipt{}
	return f.local.Do(ctx, f.shares.withShare(op, f.instances()))
}
