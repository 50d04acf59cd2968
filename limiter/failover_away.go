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
	case pathHere: // the permits were taken locally, whatever f.away is now
		return f.markLocal(f.local.Do(ctx, f.shares.withShare(op, f.instances())))
	case pathNobody:
		op.N = min(op.N, 0)
	}
	switch f.away {
	case rules.OutageOpen:
		f.asOpen.Add(1)
		if op.N < 0 && op.Kind != Forget {
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
		case op.N < 0 && op.Kind != Forget:
			return f.refused(ctx, op, rules.ReasonLimited), nil
		case mayBeDenied(op):
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

// mayBeDenied reports whether an op may be denied.
func mayBeDenied(op Op) bool {
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
	if mayBeDenied(op) && err == nil && !res.Allowed && res.RetryAfter == 0 && mayPass(op) {
		res.Decision = f.refused(ctx, op, rules.ReasonUnavailable).Decision // op asks for more than the part ever has
	}
	return res, err
}

// mayPass reports whether an ask can ever be allowed.
func mayPass(op Op) bool {
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

// mirrorLocally keeps the local backend warm, so that an outage finds neither a fresh burst nor a
// debt. It also takes the permits that the primary granted from the local backend, as far as it has
// them. It leaves there no more than this instance's part of the primary's remaining permits.
// mirrorLocally returns how many permits of a grant were taken there, or all if that does not
// matter. Errors are ignored: Local is asked again when it counts.
func (f *Failover) mirrorLocally(ctx context.Context, op Op, res Result) int64 {
	instances := int64(max(f.instances(), 1))
	switch {
	case f.away == rules.OutageOpen || f.away == rules.OutageClosed || op.Kind == Peek:
		return res.Taken
	case op.Kind == Forget:
		_, _ = f.local.Do(ctx, f.shares.withShare(op, int(instances)))
		return res.Taken
	case op.Kind == Return:
		_, _ = f.returnLocally(ctx, op)
		return res.Taken
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

// returnLocally returns to the local backend permits that the primary granted. Buckets take them
// without the Mark of mirrorLocally's take, which is not kept. In a window the permits stay taken.
func (f *Failover) returnLocally(ctx context.Context, op Op) (Result, error) {
	if op.Quota != nil && op.Quota.Algorithm.Windowed() {
		op.N = min(op.N, 0)
	}
	op.Mark, op.Receipt = 0, Receipt{}
	return f.local.Do(ctx, f.shares.withShare(op, f.instances()))
}
