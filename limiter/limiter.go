package limiter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Limiter holds each of many keys to a quota, whatever the backend. It is safe for concurrent
// use.
//
// Most callers use Allow to refuse excess requests, or Wait to delay them. Methods whose names
// end in N take n permits instead of one.
//
// A Limiter has no state but its quota. The backend keeps the state of the keys, so limiters of
// the same name on the same backend are one. Errors are those of the backend, of the arguments
// and of the context. A denial is not an error, except of Wait.
type Limiter struct {
	backend Backend
	batcher Batcher // the backend, if one call can include other ops on it; else nil
	name    string
	quota   atomic.Pointer[inForce] // nil if invalid
	invalid error                   // the error of With for an invalid quota
	lines   *WaitLines              // callers of WaitN
	inMemory
}

// New returns a Limiter that holds each key to quota. It keeps the state of the keys in backend
// under name, which is also the Rule of its decisions. Fields of quota that are not set have
// their defaults. New fails if backend is nil, if name is empty, or if [rules.Quota.Validate]
// refuses the quota.
func New(backend Backend, name string, quota rules.Quota) (*Limiter, error) {
	switch {
	case backend == nil:
		return nil, errors.New("limiter: no backend: give one, such as that of NewMemory")
	case name == "":
		return nil, errors.New("limiter: no name: it keeps the keys of this limiter apart from those of others on the backend")
	}
	l := &Limiter{backend: backend, name: name, lines: &WaitLines{}, inMemory: inMemoryOf(backend, name)}
	if b, ok := backend.(Batcher); ok && reflect.ValueOf(b).Comparable() {
		l.batcher = b
	}
	if err := l.SetQuota(quota); err != nil {
		return nil, err
	}
	return l, nil
}

// SetQuota replaces the quota of all keys. Permits that were taken, reserved or owed carry
// over: see [Op]. If SetQuota fails, the old quota stays in force.
func (l *Limiter) SetQuota(quota rules.Quota) error {
	quota = quota.WithDefaults()
	if err := quota.Validate(); err != nil {
		return fmt.Errorf("limiter %q: %w", l.name, err)
	}
	l.quota.Store(&inForce{Quota: quota})
	return nil
}

// With returns a Limiter of the same name and keys with another quota. It is for quotas that
// differ from call to call:
//
//	d, err := l.With(limiter.Per(30, time.Minute)).Allow(ctx, "project:123")
//
// Permits taken of a key under any of its quotas carry over, as with SetQuota. If quota is
// invalid, every call of the Limiter returns that error.
func (l *Limiter) With(quota rules.Quota) *Limiter {
	other := &Limiter{backend: l.backend, batcher: l.batcher, name: l.name, lines: l.lines, inMemory: l.inMemory}
	other.invalid = other.SetQuota(quota)
	return other
}

// Quota returns the quota in force, with its defaults filled in.
func (l *Limiter) Quota() rules.Quota {
	if q := l.quota.Load(); q != nil {
		return q.Quota
	}
	return rules.Quota{}
}

// op returns the Op for key and ask. Its Quota is nil if the Limiter's is invalid.
func (l *Limiter) op(key string, ask Request) Op {
	op := Op{Name: l.name, Key: key, Request: ask}
	if q := l.quota.Load(); q != nil {
		op.Quota = &q.Quota
	}
	return op
}

// do executes op and sets res, which must be zero. After an error res is zero.
func (l *Limiter) do(ctx context.Context, op *Op, res *Result) (err error) {
	switch {
	case op.Key == "":
		return ErrNoKey
	case op.Quota == nil:
		return l.invalid
	case l.memory != nil:
		err = l.memory.do(l.memory.now(), op, res)
	default:
		*res, err = l.backend.Do(ctx, *op)
	}
	if err != nil {
		*res = Result{}
		return fmt.Errorf("limiter %q: %w", l.name, endedWith(ctx, err))
	}
	res.Rule = l.name
	return nil
}

// Allow takes one permit of the key if there is one.
func (l *Limiter) Allow(ctx context.Context, key string) (rules.Decision, error) {
	return l.AllowN(ctx, key, 1)
}

// AllowN takes n permits of the key if there are as many, and none otherwise.
func (l *Limiter) AllowN(ctx context.Context, key string, n int64) (d rules.Decision, err error) {
	if l.quick(key, n, &d) {
		return d, nil
	}
	res, err := l.execute(ctx, key, Request{Kind: Take, N: n})
	return res.Decision, err
}

func (l *Limiter) execute(ctx context.Context, key string, ask Request) (res Result, err error) {
	op := l.op(key, ask)
	err = l.do(ctx, &op, &res)
	return res, err
}

// AllowAtMost takes as many permits as there are, up to n, and returns the number taken.
func (l *Limiter) AllowAtMost(ctx context.Context, key string, n int64) (int64, rules.Decision, error) {
	res, err := l.execute(ctx, key, Request{Kind: AtMost, N: n})
	return res.Taken, res.Decision, err
}

// Peek returns the decision that AllowN would make, and takes nothing. Its Remaining is the
// number of permits available.
func (l *Limiter) Peek(ctx context.Context, key string, n int64) (rules.Decision, error) {
	res, err := l.execute(ctx, key, Request{Kind: Peek, N: n})
	return res.Decision, err
}

// Reserve takes n permits that may be used after the Delay of the Reservation. It is denied
// if that would be longer than within.
func (l *Limiter) Reserve(ctx context.Context, key string, n int64, within time.Duration) (Reservation, error) {
	op := l.op(key, Request{Kind: Reserve, N: n, Within: max(within, 0)})
	var res Result
	if err := l.do(ctx, &op, &res); err != nil {
		return Reservation{}, err
	}
	return newReservation(l.backend, op, res), nil
}

// Charge takes n permits even if fewer are available; the missing ones are owed. An n below 1
// charges nothing.
func (l *Limiter) Charge(ctx context.Context, key string, n int64) error {
	_, err := l.execute(ctx, key, Request{Kind: Charge, N: max(n, 0)})
	return err
}

// Reset puts the key back into its initial state.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	_, err := l.execute(ctx, key, Request{Kind: Forget})
	return err
}
