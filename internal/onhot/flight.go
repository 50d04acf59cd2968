package onhot

import (
	"net/http"
	"sync"
	"time"
)

// Admit lets one run of the handler past the limit. It returns the handler, which is run at most
// once, or false if the limit refuses. It is called in the goroutine of Do. If refresh is
// set, a stale answer is at hand, and the limit should not let the request wait.
type Admit func(refresh bool) (http.Handler, bool)

// flight is a run of the handler that others may join.
type flight struct {
	key    string
	policy *Policy
	start  time.Time
	stamp  stamp
	done   chan struct{} // closed when the flight ends

	once sync.Once
	// Written before done is closed, under the cache's lock.
	ended  bool
	answer *Answer // nil if it is not for sharing
	reason Reason  // why it is not
}

const (
	unsharedFor = 10 * time.Second // time for which a key is remembered as not for sharing
	failedFor   = time.Second      // the same after a failure, which may be short
)

// enter returns the flight that a request joins, or a new one, which it leads. A nil flight means
// that the request goes alone for a reason, or without one that the store has another entry than
// seen. If refresh is set, the request joins none.
func (c *Cache) enter(key string, p *Policy, s stamp, seen *entry, refresh bool) (f *flight, leads bool, reason Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.base.Err() != nil:
		return nil, false, ReasonClosed
	case c.lookup(key) != seen: // a leader has stored it and left in the meantime
		return nil, false, ReasonNone
	}
	// A flight that began before an invalidation has an old answer. It is replaced.
	if f := c.flights[key]; f != nil && c.generations.valid(&f.stamp) {
		switch {
		case f.ended && f.answer == nil:
			return nil, false, f.reason // its handler has not returned yet
		case !f.ended && p.Coalesce && !refresh:
			return f, false, ReasonNone
		case !f.ended:
			return nil, false, ReasonUnderWay
		}
	}
	if c.running >= c.config.Leaders {
		return nil, false, ReasonBusy
	}
	f = &flight{key: key, policy: p, start: time.Now(), stamp: s, done: make(chan struct{})}
	c.flights[key] = f
	c.running++
	c.leaders.Add(1)
	return f, true, ReasonNone
}

// leave removes a flight whose handler has returned, or was never run.
func (c *Cache) leave(f *flight) {
	c.mu.Lock()
	if c.flights[f.key] == f { // it may have been replaced
		delete(c.flights, f.key)
	}
	c.running--
	c.mu.Unlock()
	c.leaders.Done()
}

// lead admits a new flight and starts its leader, and reports whether the limit admitted it.
func (c *Cache) lead(f *flight, r *http.Request, admit Admit, refresh bool) (admitted bool) {
	defer func() {
		if !admitted { // or admit panicked
			c.leave(f) // first, so that none of those who waited finds it again
			c.end(f, nil, ReasonUnadmitted)
		}
	}()
	h, ok := admit(refresh)
	if !ok {
		return false
	}
	ctx, cancel := c.leaderContext(r)
	go c.runLeader(f, h, f.policy.leaderRequest(ctx, r), cancel)
	return true
}

// end ends a flight, once, by an answer or by the reason why there is none for sharing. The
// answer is stored first, so that no request finds neither the flight nor the answer.
func (c *Cache) end(f *flight, a *Answer, reason Reason) {
	f.once.Do(func() {
		c.keep(f, a, reason)
		c.mu.Lock()
		f.ended, f.answer, f.reason = true, a, reason
		c.mu.Unlock()
		close(f.done)
	})
}

// keep stores what the flight has found.
func (c *Cache) keep(f *flight, a *Answer, reason Reason) {
	now := time.Now()
	e := &entry{answer: a, reason: reason, stamp: f.stamp}
	switch {
	case a != nil:
		e.until = a.received.Add(a.terms.fresh + a.terms.stale)
	case reason.unshareable():
		e.until = now.Add(unsharedFor)
	case reason.failure():
		if old := c.lookup(f.key); old != nil && old.answer != nil && now.Before(old.until) {
			old.retry.Store(int64(now.Sub(old.answer.received) + failedFor))
			return
		}
		e.until = now.Add(failedFor)
	}
	// An answer that began before an invalidation is not stored.
	if e.until.After(now) && c.generations.valid(&f.stamp) {
		c.store.put(f.key, e, now)
	}
}

// lookup returns the entry of a key, if nothing has invalidated it.
func (c *Cache) lookup(key string) *entry {
	e := c.store.get(key)
	if e == nil || !c.generations.valid(&e.stamp) {
		return nil
	}
	return e
}
