package limiter

import (
	"context"
	"time"
)

// PermitsConfig is where [MemoryPermits] get their time from.
type PermitsConfig struct {
	// Clock is the time since some instant, the same one always; nil: of the system's
	// monotonic clock. Who waits is woken by the system's.
	Clock func() time.Duration
}

// MemoryPermits are [Permits] in memory, as one client sees them. What is taken costs 16
// bytes, for an interval, each time that something is acquired; who waits costs no
// goroutine.
type MemoryPermits struct {
	object *permitsObject
	client string
}

// NewPermits makes permits without a rate, as the client sees them whose name is empty.
func NewPermits(cfg PermitsConfig) *MemoryPermits {
	if cfg.Clock == nil {
		start := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(start) }
	}
	return &MemoryPermits{object: &permitsObject{clock: cfg.Clock, ends: noEnd, clients: map[string]*permitsOf{}}}
}

// Client is the same object as another client sees it: if the rate is PerClient, with
// permits of its own.
func (p *MemoryPermits) Client(id string) *MemoryPermits {
	return &MemoryPermits{object: p.object, client: id}
}

// do does f at its time with the lock held, if the context has not ended.
func (p *MemoryPermits) do(ctx context.Context, f func(o *permitsObject) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := p.object
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick()
	return f(o)
}

// TrySetRate implements [Permits].
func (p *MemoryPermits) TrySetRate(ctx context.Context, r PermitRate) (bool, error) {
	set := false
	err := p.do(ctx, func(o *permitsObject) error {
		if err := r.Validate(); err != nil {
			return err
		}
		if set = !o.isSet(); set {
			o.reset(r)
		}
		return nil
	})
	return set, err
}

// SetRate implements [Permits].
func (p *MemoryPermits) SetRate(ctx context.Context, r PermitRate) error {
	return p.do(ctx, func(o *permitsObject) error {
		if err := r.Validate(); err != nil {
			return err
		}
		o.reset(r)
		return nil
	})
}

// UpdateRate implements [Permits].
func (p *MemoryPermits) UpdateRate(ctx context.Context, r PermitRate) error {
	return p.do(ctx, func(o *permitsObject) error {
		switch err := r.Validate(); {
		case err != nil:
			return err
		case !o.isSet():
			return ErrRateNotSet
		case r.PerClient != o.rate.PerClient:
			o.reset(r)
			return nil
		}
		if o.idle {
			o.ends, o.idle = noEnd, false
		}
		o.rate = r
		o.used()
		for _, c := range o.clients {
			c.log.Adapt(o.quota(), o.now)
		}
		o.changed()
		return nil
	})
}

// Config implements [Permits].
func (p *MemoryPermits) Config(ctx context.Context) (r PermitRate, err error) {
	err = p.do(ctx, func(o *permitsObject) error {
		if !o.isSet() {
			return ErrRateNotSet
		}
		r = o.rate
		return nil
	})
	return r, err
}

// TryAcquire implements [Permits].
func (p *MemoryPermits) TryAcquire(ctx context.Context, n int64) (bool, error) {
	return p.TryAcquireWithin(ctx, n, 0)
}

// TryAcquireWithin implements [Permits].
func (p *MemoryPermits) TryAcquireWithin(ctx context.Context, n int64, timeout time.Duration) (bool, error) {
	var took bool
	var w *permitWaiter
	err := p.do(ctx, func(o *permitsObject) (err error) {
		took, w, err = o.acquire(p.client, n, max(timeout, 0))
		return err
	})
	if w == nil {
		return took, err
	}
	return p.object.wait(ctx, w)
}

// Acquire implements [Permits].
func (p *MemoryPermits) Acquire(ctx context.Context, n int64) error {
	_, err := p.TryAcquireWithin(ctx, n, noEnd)
	return err
}

// Release implements [Permits].
func (p *MemoryPermits) Release(ctx context.Context, n int64) error {
	return p.do(ctx, func(o *permitsObject) error {
		switch {
		case n < 1:
			return ErrNoPermits
		case !o.isSet():
			return ErrRateNotSet
		}
		o.used()
		if c := o.known(p.client); c != nil {
			c.release(o.now, n)
		}
		return nil
	})
}

// AvailablePermits implements [Permits].
func (p *MemoryPermits) AvailablePermits(ctx context.Context) (n int64, err error) {
	err = p.do(ctx, func(o *permitsObject) error {
		if !o.isSet() {
			return ErrRateNotSet
		}
		n = o.rate.Rate.N
		if c := o.known(p.client); c != nil {
			n = c.log.Do(o.now, Ask{Kind: Peek}).Remaining
		}
		return nil
	})
	return n, err
}

// Expire implements [Permits].
func (p *MemoryPermits) Expire(ctx context.Context, after time.Duration) (set bool, err error) {
	err = p.do(ctx, func(o *permitsObject) error {
		if set = o.isSet(); set {
			o.ends, o.idle = endAfter(o.now, max(after, 0)), false
			o.tick()
		}
		return nil
	})
	return set, err
}

// ClearExpire implements [Permits].
func (p *MemoryPermits) ClearExpire(ctx context.Context) (had bool, err error) {
	err = p.do(ctx, func(o *permitsObject) error {
		had = o.ends != noEnd
		o.ends, o.idle = noEnd, false
		return nil
	})
	return had, err
}

// Delete implements [Permits].
func (p *MemoryPermits) Delete(ctx context.Context) (set bool, err error) {
	err = p.do(ctx, func(o *permitsObject) error {
		if set = o.isSet(); set {
			o.reset(PermitRate{})
		}
		return nil
	})
	return set, err
}
