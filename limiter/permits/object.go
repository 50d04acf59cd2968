package permits

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// object is the state that all clients share.
type object struct {
	clock func() time.Duration

	mu        sync.Mutex
	read      time.Duration // last reading of the clock
	now       time.Duration // the time by that clock, which never goes back
	rate      Rate          // zero if none is set
	ends      time.Duration // time at which rate and state expire
	keptAlive bool          // whether ends was set by KeepAlive, which each use extends
	clients   map[string]*permitAccount
	swept     int   // number of clients that the last sweep left
	waiting   int   // waiters in all lines
	arrivals  int64 // waiters so far; the next one's place
}

// tick advances the time to now. If the clock goes back by up to a minute, the time does not
// advance until it has caught up. If it goes back further, it is another clock. Callers of tick
// and of all methods below hold the lock.
func (o *object) tick() time.Duration {
	switch passed := o.clock() - o.read; {
	case passed >= 0:
		o.now = endAfter(o.now, passed)
		o.read += passed
	case -passed > time.Minute:
		o.read += passed
	}
	if o.now >= o.ends && !(o.keptAlive && o.waiting > 0) {
		o.reset(Rate{})
	}
	return o.now
}

// reset sets a rate, with all permits available. Waiters stay in line.
func (o *object) reset(r Rate) {
	var all []*permitWaiter
	for _, c := range o.clients {
		for e := c.line.Front(); e != nil; e = e.Next() {
			all = append(all, e.Value.(*permitWaiter))
		}
	}
	slices.SortFunc(all, func(a, b *permitWaiter) int { return cmp.Compare(a.came, b.came) })
	o.rate, o.ends, o.keptAlive = r, noEnd, false
	clear(o.clients)
	for _, w := range all {
		w.account = o.accountFor(w.client)
		w.place = w.account.line.PushBack(w)
	}
	o.wakeFirsts()
	o.extendLife()
}

// wakeFirsts wakes the first waiter of each line, whose turn it may be.
func (o *object) wakeFirsts() {
	for _, c := range o.clients {
		c.wakeFirst()
	}
}

// extendLife extends the life of an object with KeepAlive.
func (o *object) extendLife() {
	if o.rate.KeepAlive > 0 {
		o.ends, o.keptAlive = endAfter(o.now, o.rate.KeepAlive), true
	}
}

// noEnd is an instant that never comes, and an unlimited wait.
const noEnd time.Duration = math.MaxInt64

// endAfter returns t + d, neither below 0, or noEnd.
func endAfter(t, d time.Duration) time.Duration { return t + min(d, noEnd-t) }

func (o *object) isSet() bool { return o.rate.Rate.N > 0 }

// knownAccount returns the account of a client, or nil if it has taken nothing.
func (o *object) knownAccount(client string) *permitAccount {
	if !o.rate.PerClient {
		client = ""
	}
	return o.clients[client]
}

// accountFor returns the account of a client, which it creates if needed.
func (o *object) accountFor(client string) *permitAccount {
	c := o.knownAccount(client)
	if c == nil {
		o.sweep()
		c = &permitAccount{log: newLog(o.rate.Rate, o.now)}
		if !o.rate.PerClient {
			client = ""
		}
		o.clients[client] = c
	}
	return c
}

// sweep removes clients that have taken nothing lately, once there are twice as many clients as
// the last sweep left.
func (o *object) sweep() {
	if len(o.clients) < 2*o.swept+64 {
		return
	}
	for id, c := range o.clients {
		if c.line.Len() == 0 && c.log.FreshAfter(o.now) == 0 {
			delete(o.clients, id)
		}
	}
	o.swept = len(o.clients)
}

// checkWanted returns an error if n permits can never be taken.
func (o *object) checkWanted(n int64) error {
	switch {
	case n < 1:
		return ErrNone
	case !o.isSet():
		return ErrRateNotSet
	case n > o.rate.Rate.N:
		return ErrTooMany
	}
	return nil
}
