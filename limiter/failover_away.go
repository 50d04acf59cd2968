package limiter

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/hotparam/hotparam"
)

// Marks of what was not taken from the primary, so that a Return finds its way: those
// of backends are instants or numbers, far below.
const (
	localMark int64 = 1 << 62       // and the local backend's own, added to it
	nowhere   int64 = math.MaxInt64 // allowed, and taken from nobody
)

// ours tells whether an op returns what was not taken from the primary.
func ours(op Op) bool { return op.Kind == Return && op.N > 0 && op.Mark >= localMark }

// decide decides without the primary.
func (f *Failover) decide(ctx context.Context, op Op) (Result, error) {
	own := ours(op)
	if own && op.Mark == nowhere {
		op.N, own = 0, false
	}
	away := f.away
	if own {
		away = hotparam.AwayLocal // it was, when it was taken
	}
	switch away {
	case hotparam.AwayOpen:
		f.asOpen.Add(1)
		if op.N < 0 && op.Kind != Forget {
			return f.refused(op, hotparam.ReasonLimited), nil
		}
		res := Result{Decision: hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}}
		if op.Kind == Take || op.Kind == AtMost || op.Kind == Reserve {
			res.Taken, res.Mark = op.N, nowhere
		}
		return res, nil
	case hotparam.AwayClosed:
		f.asClosed.Add(1)
		switch {
		case op.N < 0 && op.Kind != Forget:
			return f.refused(op, hotparam.ReasonLimited), nil
		case asks(op):
			return f.refused(op, hotparam.ReasonAway), nil
		}
		return Result{Decision: hotparam.Decision{Allowed: true, Reason: hotparam.ReasonAway}}, nil
	}
	if !own {
		f.asLocal.Add(1)
	}
	return f.decideLocally(ctx, op, own)
}

// asks tells whether an op may be denied.
func asks(op Op) bool {
	return op.Kind == Take || op.Kind == Peek || op.Kind == AtMost || op.Kind == Reserve
}

// decideLocally asks the local backend, for the instance's part; own tells that op
// returns what was taken there.
func (f *Failover) decideLocally(ctx context.Context, op Op, own bool) (Result, error) {
	switch {
	case own:
		op.Mark -= localMark
	case op.Kind == Return:
		return f.returnLocally(ctx, op)
	}
	res, err := f.local.Do(ctx, f.parts.of(op, f.instances()))
	if res.Taken > 0 {
		res.Mark += localMark
	}
	if asks(op) && err == nil && !res.Allowed && res.RetryAfter == 0 && mayPass(op) {
		res.Decision = f.refused(op, hotparam.ReasonAway).Decision // for more than the part ever has
	}
	return res, err
}

// mayPass tells whether an ask can ever be allowed.
func mayPass(op Op) bool {
	return op.Quota != nil && op.N >= 0 && op.N <= op.Quota.Burst && op.Keep <= op.Quota.Burst-op.N
}

// refused is a denial until the next probe; for other reasons than that the primary is
// away for ever.
func (f *Failover) refused(op Op, reason hotparam.Reason) Result {
	d := hotparam.Decision{Reason: reason}
	if op.Quota != nil {
		d.Limit = op.Quota.Burst
	}
	if reason == hotparam.ReasonAway {
		d.RetryAfter = max(f.untilProbe(), f.minProbe)
	}
	return Result{Decision: d}
}

// note keeps the local backend warm: what the primary has granted is taken there too,
// as far as there is any. So an outage finds neither a fresh burst nor a debt. What
// comes of it is of no matter, nor is an error: Local is asked again when it counts.
func (f *Failover) note(ctx context.Context, op Op, res Result) {
	if f.away == hotparam.AwayOpen || f.away == hotparam.AwayClosed {
		return
	}
	switch op.Kind {
	case Peek:
	case Forget:
		_, _ = f.local.Do(ctx, f.parts.of(op, f.instances()))
	case Return:
		_, _ = f.returnLocally(ctx, op)
	default:
		if res.Taken < 1 {
			return
		}
		op.Ask = Ask{Kind: Peek}
		op = f.parts.of(op, f.instances())
		there, err := f.local.Do(ctx, op)
		if n := min(res.Taken, there.Remaining); err == nil && n > 0 {
			op.Ask = Ask{Kind: Charge, N: n}
			_, _ = f.local.Do(ctx, op)
		}
	}
}

// returnLocally returns what the primary had granted. Buckets take it without the Mark
// of what was noted, which nobody knows; in a window it stays taken.
func (f *Failover) returnLocally(ctx context.Context, op Op) (Result, error) {
	if op.Quota != nil && op.Quota.Algorithm.Windowed() {
		op.N = min(op.N, 0)
	}
	op.Mark = 0
	return f.local.Do(ctx, f.parts.of(op, f.instances()))
}

// parts are the quotas that instances have of those they share, by the shared one.
// Reading is lock-free.
type parts struct {
	mu    sync.Mutex
	known atomic.Pointer[map[*hotparam.Quota]part]
}

type part struct {
	instances int
	quota     *hotparam.Quota
}

// maxParts bounds the quotas that are known: where there are more, or old ones after
// reloads, it begins anew.
const maxParts = 1024

// of is the op as asked of one of so many instances.
func (p *parts) of(op Op, instances int) Op {
	if op.Quota == nil || instances < 2 {
		return op
	}
	op.Keep /= int64(instances)
	if known := p.known.Load(); known != nil {
		if known, ok := (*known)[op.Quota]; ok && known.instances == instances {
			op.Quota = known.quota
			return op
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make(map[*hotparam.Quota]part)
	if known := p.known.Load(); known != nil && len(*known) < maxParts {
		for q, part := range *known {
			next[q] = part
		}
	}
	quota, _ := Share(op.Quota, instances)
	next[op.Quota] = part{instances, &quota}
	p.known.Store(&next)
	op.Quota = &quota
	return op
}
