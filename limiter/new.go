package limiter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// Named is the [Limiter] of one name on a backend. It keeps nothing but its quota:
// what was taken is with the backend, so that limiters of the same name on the same
// backend are one.
type Named struct {
	backend Backend
	batcher Batcher // the backend, if others on it can be asked in the same call; else nil
	name    string
	quota   atomic.Pointer[hotparam.Quota]
}

var _ Limiter = (*Named)(nil)

// New makes a limiter that holds each key to quota, and keeps what was taken with
// backend under name. Its decisions have that name as their Rule. It fails without a
// backend, for an empty name, and for a quota that [hotparam.Quota.Validate] refuses;
// what is not set in the quota has its default.
func New(backend Backend, name string, quota hotparam.Quota) (*Named, error) {
	switch {
	case backend == nil:
		return nil, errors.New("limiter: no backend: give one, such as that of NewMemory")
	case name == "":
		return nil, errors.New("limiter: no name: it tells the keys of this limiter from those of others on the backend")
	}
	l := &Named{backend: backend, name: name}
	if b, ok := backend.(Batcher); ok && reflect.ValueOf(b).Comparable() {
		l.batcher = b
	}
	if err := l.SetQuota(quota); err != nil {
		return nil, err
	}
	return l, nil
}

// SetQuota holds the keys to another quota from now on. What was taken stays taken,
// unless the algorithm is another one. If it fails the old quota is in force.
func (l *Named) SetQuota(quota hotparam.Quota) error {
	quota = quota.WithDefaults()
	if err := quota.Validate(); err != nil {
		return fmt.Errorf("limiter %q: %w", l.name, err)
	}
	l.quota.Store(&quota)
	return nil
}

// Quota is the one in force, with its defaults filled in.
func (l *Named) Quota() hotparam.Quota { return *l.quota.Load() }

// Name is the limiter's.
func (l *Named) Name() string { return l.name }

func (l *Named) op(key string, ask Ask) Op {
	return Op{Quota: l.quota.Load(), Name: l.name, Key: key, Ask: ask}
}

func (l *Named) do(ctx context.Context, op Op) (Result, error) {
	if op.Key == "" {
		return Result{}, ErrNoKey
	}
	res, err := l.backend.Do(ctx, op)
	if err != nil {
		return Result{}, fmt.Errorf("limiter %q: %w", l.name, endedWith(ctx, err))
	}
	res.Rule = l.name
	return res, nil
}

// Take implements [Limiter].
func (l *Named) Take(ctx context.Context, key string, n int64) (hotparam.Decision, error) {
	res, err := l.do(ctx, l.op(key, Ask{Kind: Take, N: n}))
	return res.Decision, err
}

// Peek implements [Limiter].
func (l *Named) Peek(ctx context.Context, key string, n int64) (hotparam.Decision, error) {
	res, err := l.do(ctx, l.op(key, Ask{Kind: Peek, N: n}))
	return res.Decision, err
}

// AllowAtMost implements [Limiter].
func (l *Named) AllowAtMost(ctx context.Context, key string, n int64) (int64, hotparam.Decision, error) {
	res, err := l.do(ctx, l.op(key, Ask{Kind: AtMost, N: n}))
	return res.Taken, res.Decision, err
}

// Reserve implements [Limiter].
func (l *Named) Reserve(ctx context.Context, key string, n int64, within time.Duration) (Reservation, error) {
	op := l.op(key, Ask{Kind: Reserve, N: n, Within: max(within, 0)})
	res, err := l.do(ctx, op)
	if err != nil {
		return Reservation{}, err
	}
	return newReservation(l.backend, op, res), nil
}

// Charge implements [Limiter]. An n below 1 charges nothing.
func (l *Named) Charge(ctx context.Context, key string, n int64) error {
	_, err := l.do(ctx, l.op(key, Ask{Kind: Charge, N: max(n, 0)}))
	return err
}

// Reset implements [Limiter].
func (l *Named) Reset(ctx context.Context, key string) error {
	_, err := l.do(ctx, l.op(key, Ask{Kind: Forget}))
	return err
}
