package permits

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/limiter/internal/permitline"
	"github.com/hotparam/hotparam/rules"
)

// object is the state that all clients share.
type object struct {
	start time.Time
	line  permitline.Line

	mu        sync.Mutex
	rate      Rate          // zero if none is set
	ends      time.Duration // time after start at which rate and state expire
	keptAlive bool          // whether ends was set by KeepAlive, which each use extends
	clients   map[string]*takes
	swept     int // number of clients that the last sweep left
}

// takes are the permits that one client, or all clients, took within the last interval.
type takes struct {
	all  []take // oldest first
	used int64  // permits in all
}

type take struct {
	instant time.Duration // time since the start of the object
	n       int64
}

// expire returns the time. It resets an object that has expired. The caller of it and of all methods
// below holds the lock.
func (o *object) expire() (now time.Duration) {
	if now = time.Since(o.start); now >= o.ends {
		o.reset(Rate{})
	}
	return now
}

// reset sets a rate, with all permits available. Waiters stay in line.
func (o *object) reset(r Rate) {
	o.rate, o.ends, o.keptAlive = r, noEnd, false
	clear(o.clients)
	o.extendLife(0)
	o.line.Wake(r.PerClient)
}

// extendLife extends the life of an object with KeepAlive, which is used until after the given time.
func (o *object) extendLife(after time.Duration) {
	if o.rate.KeepAlive == 0 {
		return
	}
	ends := add(add(time.Since(o.start), after), o.rate.KeepAlive)
	if !o.keptAlive || ends > o.ends {
		o.ends, o.keptAlive = ends, true
	}
}

// noEnd is an instant that never comes, and an unlimited wait.
const noEnd time.Duration = math.MaxInt64

// add returns t + d, neither below 0, or noEnd.
func add(t, d time.Duration) time.Duration { return t + min(d, noEnd-t) }

func (o *object) isSet() bool { return o.rate.Rate.N > 0 }

// takesOf returns what a client has taken. The result is not kept unless the client takes more.
func (o *object) takesOf(client string, now time.Duration) *takes {
	t := o.clients[o.accountOf(client)]
	if t == nil {
		return &takes{}
	}
	t.drop(now, o.rate.Rate.Per)
	return t
}

func (o *object) accountOf(client string) string {
	if o.rate.PerClient {
		return client
	}
	return ""
}

// take implements [permitline.Line].Take.
func (o *object) take(ctx context.Context, client string, n int64, waits bool, before []int64) (took bool, wait time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return false, 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.expire()
	switch {
	case !o.isSet():
		return false, 0, ErrRateNotSet
	case n > o.rate.Rate.N:
		return false, 0, ErrTooMany
	}
	t := o.takesOf(client, now)
	if len(before) == 0 && t.used+n <= o.rate.Rate.N {
		o.sweep(now)
		o.clients[o.accountOf(client)] = t
		t.all, t.used = append(t.all, take{now, n}), t.used+n
		took = true
	} else if waits {
		wait = t.turn(now, o.rate.Rate, append(before, n)) - now
	}
	o.extendLife(wait)
	return took, wait, nil
}

// sweep removes clients that have taken nothing lately, once there are twice as many clients as
// the last sweep left.
func (o *object) sweep(now time.Duration) {
	if len(o.clients) < 2*o.swept+64 {
		return
	}
	for id, t := range o.clients {
		if t.drop(now, o.rate.Rate.Per); t.used == 0 {
			delete(o.clients, id)
		}
	}
	o.swept = len(o.clients)
}

// drop drops the takes that were made an interval ago.
func (t *takes) drop(now, per time.Duration) {
	for len(t.all) > 0 && t.all[0].instant <= now-per {
		t.used -= t.all[0].n
		t.all = t.all[1:]
	}
}

// turn returns when the last of some waiters gets its permits. The waiters take the permits that are
// returned first, one waiter after the other.
func (t *takes) turn(now time.Duration, r rules.Rate, wanted []int64) (turn time.Duration) {
	turn = now
	free, taken := r.N-t.used, slices.Clone(t.all)
	for _, n := range wanted {
		n = min(n, r.N)
		for ; free < n; taken = taken[1:] {
			turn = max(turn, add(taken[0].instant, r.Per))
			free += taken[0].n
		}
		free -= n
		taken = append(taken, take{turn, n})
	}
	return turn
}

// release returns the newest n permits.
func (t *takes) release(n int64) {
	for n > 0 && len(t.all) > 0 {
		newest := &t.all[len(t.all)-1]
		back := min(n, newest.n)
		n, t.used, newest.n = n-back, t.used-back, newest.n-back
		if newest.n == 0 {
			t.all = t.all[:len(t.all)-1]
		}
	}
}
