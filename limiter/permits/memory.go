package permits

import (
	"context"
	"time"
)

// New returns a [RateLimiter] in this process, without a rate, that has one client. Each
// acquisition takes 16 bytes until its interval has passed. It starts no goroutine.
func New() RateLimiter { return NewShared()("") }

// NewShared returns the views that clients have of an object like that of [New]. Each client has
// permits of its own if the rate is PerClient.
func NewShared() func(client string) RateLimiter {
	o := &object{start: time.Now(), ends: noEnd, clients: map[string]*takes{}}
	o.line.Take = o.take
	return func(client string) RateLimiter { return &memory{o, client} }
}

// memory is an object as one client sees it.
type memory struct {
	object *object
	client string
}

// do calls f with the object's lock held, unless the context has ended.
func (p *memory) do(ctx context.Context, f func(o *object, now time.Duration) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.object.mu.Lock()
	defer p.object.mu.Unlock()
	return f(p.object, p.object.expire())
}

// doSet calls f like do, and fails if no rate is set.
func (p *memory) doSet(ctx context.Context, f func(o *object, now time.Duration)) error {
	return p.do(ctx, func(o *object, now time.Duration) error {
		if !o.isSet() {
			return ErrRateNotSet
		}
		f(o, now)
		return nil
	})
}

func (p *memory) TrySetRate(ctx context.Context, r Rate) (set bool, err error) {
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

func (p *memory) SetRate(ctx context.Context, r Rate) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return p.do(ctx, func(o *object, _ time.Duration) error {
		o.reset(r)
		return nil
	})
}

func (p *memory) UpdateRate(ctx context.Context, r Rate) error {
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

func (p *memory) Config(ctx context.Context) (r Rate, err error) {
	err = p.doSet(ctx, func(o *object, _ time.Duration) { r = o.rate })
	return r, err
}

func (p *memory) TryAcquire(ctx context.Context, n int64) (bool, error) {
	return p.object.line.Acquire(ctx, p.client, n, 0)
}

func (p *memory) TryAcquireWithin(ctx context.Context, n int64, timeout time.Duration) (bool, error) {
	return p.object.line.Acquire(ctx, p.client, n, timeout)
}

func (p *memory) Acquire(ctx context.Context, n int64) error {
	_, err := p.object.line.Acquire(ctx, p.client, n, noEnd)
	return err
}

func (p *memory) Release(ctx context.Context, n int64) error {
	if n < 1 {
		return ErrNone
	}
	return p.doSet(ctx, func(o *object, now time.Duration) {
		o.extendLife(0)
		o.takesOf(p.client, now).release(n)
		o.line.Wake(o.rate.PerClient)
	})
}

func (p *memory) AvailablePermits(ctx context.Context) (n int64, err error) {
	err = p.doSet(ctx, func(o *object, now time.Duration) { n = max(0, o.rate.Rate.N-o.takesOf(p.client, now).used) })
	return n, err
}

func (p *memory) Expire(ctx context.Context, after time.Duration) (set bool, err error) {
	err = p.do(ctx, func(o *object, now time.Duration) error {
		if set = o.isSet(); set {
			o.ends, o.keptAlive = add(now, max(after, 0)), false
			o.expire()
		}
		return nil
	})
	return set, err
}

func (p *memory) ClearExpire(ctx context.Context) (had bool, err error) {
	err = p.do(ctx, func(o *object, _ time.Duration) error {
		had = o.ends != noEnd
		o.ends, o.keptAlive = noEnd, false
		return nil
	})
	return had, err
}

func (p *memory) Delete(ctx context.Context) (set bool, err error) {
	err = p.do(ctx, func(o *object, _ time.Duration) error {
		if set = o.isSet(); set {
			o.reset(Rate{})
		}
		return nil
	})
	return set, err
}
