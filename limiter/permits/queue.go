package permits

import (
	"container/list"
	"context"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/limiter"
)

// permitAccount is the permits of one client, or of all clients.
type permitAccount struct {
	log  takeLog
	line list.List // waiters (*waiter), in order of arrival
	// plan is log with the permits that the waiters will take. It is nil until it is needed.
	plan limiter.State
}

// permitWaiter is a caller that waits. Only the first in a line, and waiters with a timeout, have a
// timer. Each timer that fires serves all waiters of its line whose turn it is.
type permitWaiter struct {
	client  string
	n       int64
	until   time.Duration // end of the wait, or noEnd
	came    int64
	account *permitAccount
	place   *list.Element
	wake    chan struct{}
	// over means that the waiter has left the line, because it took the permits or never will.
	over, took bool
	err        error
}

// acquire takes n permits or, if they will be available in time, joins the line.
func (o *object) acquire(client string, n int64, within time.Duration) (took bool, w *permitWaiter, err error) {
	if err := o.checkWanted(n); err != nil {
		return false, nil, err
	}
	o.extendLife()
	c := o.accountFor(client)
	o.serve(c) // waiters whose turn has come
	if c.line.Len() == 0 && c.log.Do(o.now, limiter.Request{Kind: limiter.Take, N: n}).Allowed {
		return true, nil, nil
	}
	if within == 0 || !c.planWait(o.now, n, within) {
		return false, nil, nil
	}
	o.arrivals++
	w = &permitWaiter{client: client, n: n, until: endAfter(o.now, within), came: o.arrivals, account: c, wake: make(chan struct{}, 1)}
	w.place = c.line.PushBack(w)
	o.waiting++
	return false, w, nil
}

// planWait plans n permits for another waiter, and reports whether they come in time. A waiter
// without a timeout needs no plan, unless there is one.
func (c *permitAccount) planWait(now time.Duration, n int64, within time.Duration) bool {
	if c.plan == nil {
		if within == noEnd {
			return true
		}
		c.plan = c.log.Clone()
		for e := c.line.Front(); e != nil; e = e.Next() {
			c.plan.Do(now, limiter.Request{Kind: limiter.Reserve, N: e.Value.(*permitWaiter).n, Within: noEnd})
		}
	}
	if c.plan.Do(now, limiter.Request{Kind: limiter.Reserve, N: n, Within: within}).Allowed || within == noEnd {
		return true
	}
	if c.line.Len() == 0 {
		c.plan = nil // no waiter needs it
	}
	return false
}

// wait blocks until the wait has ended.
func (o *object) wait(ctx context.Context, w *permitWaiter) (bool, error) {
	var timer *time.Timer
	var fired <-chan time.Time
	for {
		again := o.checkTurn(ctx, w)
		switch {
		case again == 0:
			if timer != nil {
				timer.Stop()
			}
			return w.took, w.err
		case again == noEnd: // the waiter before it wakes it
			fired = nil
		case timer == nil:
			timer = time.NewTimer(again)
			fired = timer.C
		default:
			timer.Reset(again)
			fired = timer.C
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-fired:
		}
	}
}

// checkTurn returns the time until the next look, or 0 if the wait has ended.
func (o *object) checkTurn(ctx context.Context, w *permitWaiter) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick()
	first := o.serve(w.account)
	switch {
	case w.over:
		return 0
	case ctx.Err() != nil:
		o.endWait(w, false, ctx.Err())
		return 0
	case w.account.line.Front() == w.place:
		return first
	case w.until == noEnd:
		return noEnd
	case w.until <= o.now:
		o.endWait(w, false, nil)
		return 0
	}
	return w.until - o.now
}

// serve ends the waits, from the first on, of all waiters that can be served or cannot wait any
// longer. It returns how long the next one has to wait.
func (o *object) serve(c *permitAccount) time.Duration {
	for c.line.Len() > 0 {
		w := c.line.Front().Value.(*permitWaiter)
		if err := o.checkWanted(w.n); err != nil { // the rate has changed
			o.endWait(w, false, err)
			continue
		}
		d := c.log.Do(o.now, limiter.Request{Kind: limiter.Take, N: w.n})
		if !d.Allowed && d.RetryAfter <= w.until-o.now {
			return d.RetryAfter
		}
		o.endWait(w, d.Allowed, nil)
	}
	return noEnd
}

// endWait ends a wait.
func (o *object) endWait(w *permitWaiter, took bool, err error) {
	w.over, w.took, w.err = true, took, err
	w.account.line.Remove(w.place)
	w.wakeUp()
	w.account.wakeFirst()
	o.waiting--
	if took {
		o.extendLife()
	}
}

// wakeUp makes the waiter look for its turn.
func (w *permitWaiter) wakeUp() { base.Notify(w.wake) }

// wakeFirst makes the first in line look, since its turn may have moved.
func (c *permitAccount) wakeFirst() {
	c.plan = nil
	if first := c.line.Front(); first != nil {
		first.Value.(*permitWaiter).wakeUp()
	}
}

// release returns the newest n permits.
func (c *permitAccount) release(now time.Duration, n int64) {
	c.log.ReleaseNewest(now, n)
	c.wakeFirst()
}
