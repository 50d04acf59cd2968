package permits

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// object is what all clients share.
type object struct {
	clock func() time.Duration

	mu      sync.Mutex
	read    time.Duration // what the clock told last
	now     time.Duration // the time that has passed by it, and never goes back
	rate    Rate          // zero: none is set
	ends    time.Duration // when rate and state go
	idle    bool          // ends is by KeepAlive
	clients map[string]*account
	swept   int // how many clients the last sweep left
	waiting int // in all lines
	came    int64
}

// tick makes it now. By up to a minute the clock may go back and is waited for; by more
// it is another clock. Who calls it holds the lock, as for all below.
func (o *object) tick() time.Duration {
	switch passed := o.clock() - o.read; {
	case passed >= 0:
		o.now = endAfter(o.now, passed)
		o.read += passed
	case -passed > time.Minute:
		o.read += passed
	}
	if o.now >= o.ends && !(o.idle && o.waiting > 0) {
		o.reset(Rate{})
	}
	return o.now
}

// reset sets a rate, with all permits there. Those who wait stay in line.
func (o *object) reset(r Rate) {
	var all []*waiter
	for _, c := range o.clients {
		for e := c.line.Front(); e != nil; e = e.Next() {
			all = append(all, e.Value.(*waiter))
		}
	}
	slices.SortFunc(all, func(a, b *waiter) int { return cmp.Compare(a.came, b.came) })
	o.rate, o.ends, o.idle = r, noEnd, false
	clear(o.clients)
	for _, w := range all {
		w.of = o.of(w.client)
		w.place = w.of.line.PushBack(w)
	}
	o.changed()
	o.used()
}

// changed wakes those who are first in line, since it may be their turn.
func (o *object) changed() {
	for _, c := range o.clients {
		c.changed()
	}
}

// used prolongs the life of what goes without use.
func (o *object) used() {
	if o.rate.KeepAlive > 0 {
		o.ends, o.idle = endAfter(o.now, o.rate.KeepAlive), true
	}
}

// noEnd is when nothing happens, and for how long one may wait for it.
const noEnd time.Duration = math.MaxInt64

// endAfter is t and d, neither below 0, or noEnd.
func endAfter(t, d time.Duration) time.Duration { return t + min(d, noEnd-t) }

func (o *object) isSet() bool { return o.rate.Rate.N > 0 }

// known are the permits of a client; nil: all are there.
func (o *object) known(client string) *account {
	if !o.rate.PerClient {
		client = ""
	}
	return o.clients[client]
}

// of are the permits of a client, which is known from then on.
func (o *object) of(client string) *account {
	c := o.known(client)
	if c == nil {
		o.sweep()
		c = &account{log: newLog(o.rate.Rate, o.now)}
		if !o.rate.PerClient {
			client = ""
		}
		o.clients[client] = c
	}
	return c
}

// sweep forgets clients that have taken nothing lately, once there are twice as many as
// it left the last time.
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

// wants tells what is wrong with wanting n permits.
func (o *object) wants(n int64) error {
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
