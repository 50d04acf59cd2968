package permits

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/limiter"
)

// Config configures a [Memory]. The zero value is valid.
type Config struct {
	// Clock returns the time since some fixed instant. Nil means the system's monotonic
	// clock. Waits are timed by the system's clock in any case.
	Clock func() time.Duration
}

// Memory is a [RateLimiter] in this process, as one client sees it. Each acquisition takes
// 16 bytes until its interval has passed. It starts no goroutine.
type Memory struct {
	object *object
	client string
}

// New returns a RateLimiter without a rate, as the client with the empty name sees it.
func New(cfg Config) *Memory {
	if cfg.Clock == nil {
		start := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(start) }
	}
	return &Memory{object: &object{clock: cfg.Clock, ends: noEnd, clients: map[string]*permitAccount{}}}
}

// Client returns the object as client id sees it. It has permits of its own if the rate is
// PerClient.
func (p *Memory) Client(id string) *Memory {
	return &Memory{object: p.object, client: id}
}

// do calls f at the object's time with the lock held, unless the context has ended.
func (p *Memory) do(ctx context.Context, f func(o *object) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := p.object
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick()
	return f(o)
}

// TrySetRate implements [RateLimiter].
func (p *Memory) TrySetRate(ctx context.Context, r Rate) (bool, error) {
	set := false
	err := p.do(ctx, func(o *object) error {
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

// SetRate implements [RateLimiter].
func (p *Memory) SetRate(ctx context.Context, r Rate) error {
	return p.do(ctx, func(o *object) error {
		if err := r.Validate(); err != nil {
			return err
		}
		o.reset(r)
		return nil
	})
}

// UpdateRate implements [RateLimiter].
func (p *Memory) UpdateRate(ctx context.Context, r Rate) error {
	return p.do(ctx, func(o *object) error {
		switch err := r.Validate(); {
		case err != nil:
			return err
		case !o.isSet():
			return ErrRateNotSet
		case r.PerClient != o.rate.PerClient:
			o.reset(r)
			return nil
		}
		if o.keptAlive { // the old rate's KeepAlive; extendLife sets the new one's
			o.ends, o.keptAlive = noEnd, false
		}
		o.rate = r
		o.extendLife()
		for _, c := range o.clients {
			c.log.Adapt(quotaOf(o.rate.Rate), o.now)
		}
		o.wakeFirsts()
		return nil
	})
}

// Config implements [RateLimiter].
func (p *Memory) Config(ctx context.Context) (r Rate, err error) {
	err = p.do(ctx, func(o *object) error {
		if !o.isSet() {
			return ErrRateNotSet
		}
		r = o.rate
		return nil
	})
	return r, err
}

// TryAcquire implements [RateLimiter].
func (p *Memory) TryAcquire(ctx context.Context, n int64) (bool, error) {
	return p.TryAcquireWithin(ctx, n, 0)
}

// TryAcquireWithin implements [RateLimiter].
func (p *Memory) TryAcquireWithin(ctx context.Context, n int64, timeout time.Duration) (bool, error) {
	var took bool
	var w *permitWaiter
	err := p.do(ctx, func(o *object) (err error) {
		took, w, err = o.acquire(p.client, n, max(timeout, 0))
		return err
	})
	if w == nil {
		return took, err
	}
	return p.object.wait(ctx, w)
}

// Acquire implements [RateLimiter].
func (p *Memory) Acquire(ctx context.Context, n int64) error {
	_, err := p.TryAcquireWithin(ctx, n, noEnd)
	return err
}

// Release implements [RateLimiter].
func (p *Memory) Release(ctx context.Context, n int64) error {
	return p.do(ctx, func(o *object) error {
		switch {
		case n < 1:
			return ErrNone
		case !o.isSet():
			return ErrRateNotSet
		}
		o.extendLife()
		if c := o.knownAccount(p.client); c != nil {
			c.release(o.now, n)
		}
		return nil
	})
}

// AvailablePermits implements [RateLimiter].
func (p *Memory) AvailablePermits(ctx context.Context) (n int64, err error) {
	err = p.do(ctx, func(o *object) error {
		if !o.isSet() {
			return ErrRateNotSet
		}
		n = o.rate.Rate.N
		if c := o.knownAccount(p.client); c != nil {
			n = c.log.Do(o.now, limiter.Request{Kind: limiter.Peek}).Remaining
		}
		return nil
	})
	return n, err
}

// Expire implements [RateLimiter].
func (p *Memory) Expire(ctx context.Context, after time.Duration) (set bool, err error) {
	err = p.do(ctx, func(o *object) error {
		if set = o.isSet(); set {
			o.ends, o.keptAlive = endAfter(o.now, max(after, 0)), false
			o.tick()
		}
		return nil
	})
	return set, err
}

// ClearExpire implements [RateLimiter].
func (p *Memory) ClearExpire(ctx context.Context) (had bool, err error) {
	err = p.do(ctx, func(o *object) error {
		had = o.ends != noEnd
		o.ends, o.keptAlive = noEnd, false
		return nil
	})
	return had, err
}

// Delete implements [RateLimiter].
func (p *Memory) Delete(ctx context.Context) (set bool, err error) {
	err = p.do(ctx, func(o *object) error {
		if set = o.isSet(); set {
			o.reset(Rate{})
		}
		return nil
	})
	return set, err
}
