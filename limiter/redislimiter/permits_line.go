package redislimiter

import (
	"container/list"
	"context"
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/limiter/permits"
)

// permitsWaiter is a waiter. Only the first one asks Redis.
type permitsWaiter struct {
	n     int64
	wake  chan struct{} // signals that the waiter should check its turn; of capacity 1
	place *list.Element
}

const (
	// permitsRecheck is the longest time between two asks of the first waiter, since others may
	// release permits or change the rate.
	permitsRecheck = time.Second
	// maxPermitsAhead bounds the number of earlier waiters that are passed to a script.
	maxPermitsAhead = 1000
)

// TryAcquire implements [permits.RateLimiter].
func (p *Permits) TryAcquire(ctx context.Context, n int64) (bool, error) {
	return p.TryAcquireWithin(ctx, n, 0)
}

// Acquire implements [permits.RateLimiter].
func (p *Permits) Acquire(ctx context.Context, n int64) error {
	_, err := p.TryAcquireWithin(ctx, n, math.MaxInt64)
	return err
}

// TryAcquireWithin implements [permits.RateLimiter].
func (p *Permits) TryAcquireWithin(ctx context.Context, n int64, timeout time.Duration) (bool, error) {
	if n < 1 {
		return false, permits.ErrNone
	}
	start := time.Now()
	took, wait, err := p.takePermits(ctx, n, timeout > 0, p.wanted())
	if took || err != nil || timeout <= 0 || wait > timeout-time.Since(start) {
		return took, err
	}
	w := p.addWaiter(n)
	defer p.removeWaiter(w)
	again := time.NewTimer(min(wait, permitsRecheck))
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-w.wake:
		case <-again.C:
		}
		// Permits that were promised are taken even if they come a little late.
		left := timeout - time.Since(start)
		if p.isFirst(w) {
			took, wait, err = p.takePermits(ctx, n, true, nil)
			if took || err != nil || wait > left {
				return took, err
			}
			again.Reset(min(wait, permitsRecheck))
		} else if left <= 0 {
			return false, nil
		} else {
			again.Reset(left) // a waiter that becomes the first is woken
		}
	}
}

// wanted returns the number of permits that each waiter wants, in their order.
func (p *Permits) wanted() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int64
	for e := p.line.Front(); e != nil && len(all) < maxPermitsAhead; e = e.Next() {
		all = append(all, e.Value.(*permitsWaiter).n)
	}
	return all
}

func (p *Permits) addWaiter(n int64) *permitsWaiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &permitsWaiter{n: n, wake: make(chan struct{}, 1)}
	w.place = p.line.PushBack(w)
	return w
}

func (p *Permits) removeWaiter(w *permitsWaiter) {
	p.mu.Lock()
	wasFirst := p.line.Front() == w.place
	p.line.Remove(w.place)
	p.mu.Unlock()
	if wasFirst {
		p.wakeFirst()
	}
}

func (p *Permits) isFirst(w *permitsWaiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line.Front() == w.place
}

// wakeFirst makes the first in line ask again.
func (p *Permits) wakeFirst() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.line.Front(); first != nil {
		base.Notify(first.Value.(*permitsWaiter).wake)
	}
}
