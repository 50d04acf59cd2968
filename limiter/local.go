package limiter

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Local limits one thing in this process to a rate, like [golang.org/x/time/rate.Limiter]. Most
// callers use Allow to drop excess events, or Wait to delay them. It is a token bucket that
// starts full. It is safe for concurrent use and lock-free except for Wait, and its Allow
// allocates nothing.
//
// Use [New] for a limit for each of many keys, on Redis or by another algorithm, and
// [NewBucket] for a clock of your own.
type Local struct {
	start  time.Time
	quota  *rules.Quota
	bucket *Bucket
	lines  WaitLines
}

// NewLocal returns a Local that allows perSecond events in a second, and bursts of up to
// burst events. It panics if perSecond is not positive or above [rules.MaxRate], or if
// burst is below 1.
func NewLocal(perSecond float64, burst int64) *Local {
	rate := rules.Rate{N: 1, Per: time.Duration(math.Ceil(float64(time.Second) / perSecond))}
	if burst < 1 {
		panic(fmt.Sprintf("limiter.NewLocal: burst %d: must be at least 1", burst))
	}
	if !(perSecond > 0 && perSecond <= rules.MaxRate) {
		panic(fmt.Sprintf("limiter.NewLocal: %v events per second: must be above 0, at most %d", perSecond, rules.MaxRate))
	}
	quota := &rules.Quota{Algorithm: rules.TokenBucket, Rate: rate, Burst: burst}
	bucket, err := NewBucket(quota, nil)
	if err != nil {
		panic(fmt.Sprintf("limiter.NewLocal: %v", err))
	}
	return &Local{start: time.Now(), quota: quota, bucket: bucket}
}

// Allow reports whether an event may happen now.
func (l *Local) Allow() bool { return l.AllowN(1) }

// AllowN reports whether n events may happen now. If not, it takes nothing.
func (l *Local) AllowN(n int64) bool {
	now := time.Since(l.start)
	if v, plan := l.bucket.takeWord(now, n); plan != nil {
		return v.allowed
	}
	return l.bucket.Do(now, Request{N: n}).Allowed
}

// Wait blocks until an event may happen.
func (l *Local) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN blocks until n events may happen, in the order of the calls. It fails at once with a
// [*DeniedError] if that would be after the deadline of ctx, or never. It fails with the error
// of ctx when ctx ends. A call that fails takes nothing, and its place passes to the next call.
func (l *Local) WaitN(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := l.bucket.Do(time.Since(l.start), Request{Kind: Reserve, N: n, Within: timeLeft(ctx)})
	if !r.Allowed {
		return &DeniedError{r.Decision}
	}
	if r.Delay == 0 {
		return nil
	}
	until, _ := ctx.Deadline()
	w, d := l.lines.Stand(&WaitClaim{Asker: localAsker{l}, Quota: l.quota, N: n, Until: until}, &r)
	return w.wait(ctx, d)
}

// localAsker asks for the permits of a Local.
type localAsker struct{ local *Local }

func (a localAsker) Do(_ context.Context, ask Request) (Result, error) {
	return a.local.bucket.Do(time.Since(a.local.start), ask), nil
}
