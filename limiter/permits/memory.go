package permits

import (
	"context"
	"time"
)

// Memory is a [RateLimiter] in this process, as one client sees it. Each acquisition takes
// 16 bytes until its interval has passed. It starts no goroutine.
type Memory struct {
	object *object
	client string
}

var _ RateLimiter = (*Memory)(nil)

// New returns a RateLimiter without a rate, as the client with the empty name sees it.
func New() *Memory {
	o := &object{start: time.Now(), ends: noEnd, clients: map[string]*takes{}}
	o.line.Take = o.take
	return &Memory{object: o}
}

// Client returns the object as client id sees it. It has permits of its own if the rate is
// PerClient.
func (p *Memory) Client(id string) *Memory {
	return &Memory{object: p.object, client: id}
}

// do calls f with the object's lock held, unless the context has ended.
func (p *Memory) do(ctx context.Context, f func(o *object, now time.Duration) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.object.mu.Lock()
	defer p.object.mu.Unlock()
	return f(p.object, p.object.expire())
}

// doSet calls f like do, and fails if no rate is set.
func (p *Memory) doSet(ctx context.Context, f func(o *object, now time.Duration)) error {
	return p.do(ctx, func(o *object, now time.Duration) error {
		if !o.isSet() {
			return ErrRateNotSet
		}
		f(o, now)
		return nil
	})
}

// TrySetRate implements [RateLimiter].
func (p *Memory) TrySetRate(ctx context.Context, r Rate) (set bool, err error) {
	if err := r.Validate(); err != nil {
		return false, err
	}
	err = p.do(ctx, func(o *object, _ time.Duration) error {
		if set = !o.isSet(); set {
			o.reset(r)
		}
		return nil
	})
	return set, err
}

// SetRate implements [RateLimiter].
func (p *Memory) SetRate(ctx context.Context, r Rate) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return p.do(ctx, func(o *object, _ time.Duration) error {
		o.reset(r)
		return nil
	})
}

// UpdateRate implements [RateLimiter].
func (p *Memory) UpdateRate(ctx context.Context, r Rate) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return p.doSet(ctx, func(o *object, _ time.Duration) {
		if r.PerClient != o.rate.PerClient {
			o.reset(r)
			return
		}
		if o.keptAlive { // the old rate's KeepAlive; extendLife sets the new one's
			o.ends, o.keptAlive = noEnd, false
		}
		o.rate = r
		o.extendLife(0)
		o.line.Wake(r.PerClient)
	})
}

// Config implements [RateLimiter].
func (p *Memory) Config(ctx context.Context) (r Rate, err error) {
	err = p.doSet(ctx, func(o *object, _ time.Duration) { r = o.rate })
	return r, err
}

// TryAcquire implements [RateLimiter].
func (p *Memory) TryAcquire(ctx context.Context, n int64) (bool, error) {
	return p.object.line.Acquire(ctx, p.client, n, 0)
}

// TryAcquireWithin implements [RateLimiter].
func (p *Memory) TryAcquireWithin(ctx context.Context, n int64, timeout time.Duration) (bool, error) {
	return p.object.line.Acquire(ctx, p.client, n, timeout)
}

// Acquire implements [RateLimiter].
func (p *Memory) Acquire(ctx context.Context, n int64) error {
	_, err := p.object.line.Acquire(ctx, p.client, n, noEnd)
	return err
}

// Release implements [RateLimiter].
func (p *Memory) Release(ctx context.Context, n int64) error {
	if n < 1 {
		return ErrNone
	}
	return p.doSet(ctx, func(o *object, now time.Duration) {
		o.extendLife(0)
		o.takesOf(p.client, now).release(n)
		o.line.Wake(o.rate.PerClient)
	})
}

// AvailablePermits implements [RateLimiter].
func (p *Memory) AvailablePermits(ctx context.Context) (n int64, err error) {
	err = p.doSet(ctx, func(o *object, now time.Duration) { n = max(0, o.rate.Rate.N-o.takesOf(p.client, now).used) })
	return n, err
}

// Expire implements [RateLimiter].
func (p *Memory) Expire(ctx context.Context, after time.Duration) (set bool, err error) {
	err = p.do(ctx, func(o *object, now time.Duration) error {
		if set = o.isSet(); set {
			o.ends, o.keptAlive = add(now, max(after, 0)), false
			o.expire()
		}
		return nil
	})
	return set, err
}

// ClearExpire implements [RateLimiter].
func (p *Memory) ClearExpire(ctx context.Context) (had bool, err error) {
	err = p.do(ctx, func(o *object, _ time.Duration) error {
		had = o.ends != noEnd
		o.ends, o.keptAlive = noEnd, false
		return nil
	})
	return had, err
}

// Delete implements [RateLimiter].
func (p *Memory) Delete(ctx context.Context) (set bool, err error) {
	err = p.do(ctx, func(o *object, _ time.Duration) error {
		if set = o.isSet(); set {
			o.reset(Rate{})
		}
		return nil
	})
	return set, err
}
