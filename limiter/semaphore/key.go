package semaphore

import (
	"maps"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// keyState is a key with held permits and its waiters, or an idle key. The lock of its stripe
// guards it.
type keyState struct {
	name    string
	stripe  *stripe // fixed
	permits int64
	held    int64         // above permits after these became fewer
	line    *queue        // nil until a caller waits
	since   time.Duration // time when the first permit was taken; set while mean is 0
	mean    time.Duration // recent time for which a lease is held; 0 until one is released

	// contended means that a caller was denied or had to wait. From then on each lease is
	// timed.
	contended bool

	idle   bool
	listed bool      // whether the key is in idleKeys
	behind *keyState // next key in that list
}

func (k *keyState) free() int64 { return k.permits - k.held }

func (k *keyState) waiting() int {
	if k.line == nil {
		return 0
	}
	return k.line.len
}

// nextWaiter returns the waiter to serve next, or nil.
func (k *keyState) nextWaiter() *waiter {
	if k.line == nil {
		return nil
	}
	return k.line.head()
}

func (k *keyState) setAllowed(d *rules.Decision) {
	d.Allowed, d.Reason, d.Limit, d.Remaining = true, rules.ReasonWithin, k.permits, k.free()
}

// denial returns a denial. A nil k means that all permits are free.
func (k *keyState) denial(ask *Request, retry time.Duration) rules.Decision {
	d := rules.Decision{Reason: rules.ReasonBusy, Limit: ask.Permits, Remaining: ask.Permits, RetryAfter: retry}
	if k != nil {
		d.Remaining = max(k.free(), 0)
	}
	return d
}

// Bounds of an estimate.
const (
	minEstimate = time.Millisecond
	maxEstimate = time.Hour
)

// estimate returns how long it would take to serve ask, if the waiters ahead stay as many. That is
// the recent time for which a lease is held, for each time that all permits have to be released.
// Before a lease has been released, the time that the permits have been held so far is used instead.
func (k *keyState) estimate(ask *Request, now time.Duration) time.Duration {
	mean := k.mean
	if mean == 0 {
		mean = now - k.since
	}
	position := 1
	if k.line != nil {
		position += k.line.ahead(ask.Class)
	}
	wait := float64(mean) * float64(position) / float64(k.permits)
	return time.Duration(min(max(wait, float64(minEstimate)), float64(maxEstimate)))
}

// busyKey returns a key whose permits may be granted: k, or a new one if k is nil. If the key was
// idle, the caller must grant permits at once.
func (st *stripe) busyKey(k *keyState, name string, permits int64) *keyState {
	if k == nil {
		k = &keyState{name: name, stripe: st, permits: permits, idle: true}
		if st.keys == nil {
			st.keys = make(map[string]*keyState)
		}
		st.keys[name] = k
		st.most = max(st.most, len(st.keys))
	}
	st.recent = k
	st.markBusy(k)
	return k
}

// markBusy makes a key busy. If it was idle, the caller must grant permits at once.
func (st *stripe) markBusy(k *keyState) {
	if k.idle {
		k.idle = false
		st.stats.Keys++
	}
}

// markIdle makes a key without held permits idle. It has no waiters, which would hold the permits.
func (st *stripe) markIdle(k *keyState) {
	st.stats.Keys--
	k.idle, k.since = true, 0
	if !k.listed {
		st.idle.add(k)
	}
	if st.idle.len > maxIdleKeys {
		st.forget()
	}
}

// forget removes the key that has been idle for longest.
func (st *stripe) forget() {
	for k := st.idle.pop(); k != nil; k = st.idle.pop() {
		if k.idle {
			st.remove(k)
			return
		}
	}
}

// remove removes a key. A map keeps its room, so one that has become nearly empty is replaced.
func (st *stripe) remove(k *keyState) {
	delete(st.keys, k.name)
	if st.recent == k {
		st.recent = nil
	}
	if n := len(st.keys); n < st.most/8 {
		old := st.keys
		st.keys, st.most = make(map[string]*keyState, n), n
		maps.Copy(st.keys, old)
	}
}

// maxIdleKeys is the number of a stripe's keys that are kept for a while without held permits.
// They remember how long their leases are held, and cost less when they are asked for again.
const maxIdleKeys = 16

// idleKeys is a queue of keys that became idle. Some of them are no longer idle: removing a key
// whenever it is asked for, and adding it again, would be useless work.
type idleKeys struct {
	oldest, newest *keyState
	len            int
}

func (l *idleKeys) add(k *keyState) {
	k.listed = true
	if l.oldest == nil {
		l.oldest = k
	} else {
		l.newest.behind = k
	}
	l.newest = k
	l.len++
}

// pop removes the oldest key and returns it, or nil.
func (l *idleKeys) pop() *keyState {
	k := l.oldest
	if k != nil {
		l.oldest, k.behind, k.listed = k.behind, nil, false
		l.len--
	}
	return k
}
