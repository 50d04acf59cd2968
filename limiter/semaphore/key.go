package semaphore

import (
	"time"

	"github.com/hotparam/hotparam"
)

// keyState is a key with held permits, and its waiters. The lock of its stripe guards it.
type keyState struct {
	name    string
	permits int64
	held    int64         // more than permits after they became fewer
	line    *queue        // nil until somebody waits
	since   time.Duration // when the first permit was taken
	mean    time.Duration // recent time that a lease is held; 0 until one is released
	next    *keyState     // among the idle ones
}

func (k *keyState) free() int64 { return k.permits - k.held }

func (k *keyState) waiting() int {
	if k.line == nil {
		return 0
	}
	return k.line.len
}

func (k *keyState) within() hotparam.Decision {
	return hotparam.Decision{Allowed: true, Reason: hotparam.ReasonWithin, Limit: k.permits, Remaining: k.free()}
}

// denied returns a denial. A nil k means that all permits are free.
func (k *keyState) denied(ask *Ask, retry time.Duration) hotparam.Decision {
	d := hotparam.Decision{Reason: hotparam.ReasonBusy, Limit: ask.Permits, Remaining: ask.Permits, RetryAfter: retry}
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

// estimate returns how long it would take to serve ask, if the waiters ahead stay as many and
// are like it: the recent time that a lease is held, for each time that all permits have to
// come back. Before a lease has been released, it is the time that the permits have been held
// so far.
func (k *keyState) estimate(ask *Ask, now time.Duration) time.Duration {
	mean := k.mean
	if mean == 0 {
		mean = now - k.since
	}
	position := 1
	if k.line != nil {
		position += k.line.ahead(ask.Class)
	}
	wait := float64(mean) * float64(position) * float64(ask.N) / float64(k.permits)
	return time.Duration(min(max(wait, float64(minEstimate)), float64(maxEstimate)))
}

// newKey returns a key without held permits, or nil if there is no room for it. Its permits
// must be granted at once.
func (st *stripe) newKey(name string, permits int64, now time.Duration) *keyState {
	if s := st.semaphore; s.keys.Add(1) > s.max {
		s.keys.Add(-1)
		return nil
	}
	k := st.idle
	if k == nil {
		k = new(keyState)
	} else {
		st.idle = k.next
		st.idles--
	}
	*k = keyState{name: name, permits: permits, since: now}
	st.keys[name] = k
	st.peak = max(st.peak, len(st.keys))
	return k
}

// Bounds of the keys of a stripe that are kept for reuse, and of the map that is kept when its
// keys have gone.
const (
	maxIdleKeys = 16
	smallMap    = 64
)

// drop removes a key without held permits; it has no waiters, who would hold them.
func (st *stripe) drop(k *keyState) {
	delete(st.keys, k.name)
	st.semaphore.keys.Add(-1)
	if st.peak > smallMap && len(st.keys) < st.peak/4 { // a map does not shrink by itself
		keys := make(map[string]*keyState, 2*len(st.keys))
		for name, k := range st.keys {
			keys[name] = k
		}
		st.keys, st.peak = keys, len(keys)
	}
	if st.idles < maxIdleKeys {
		*k = keyState{next: st.idle}
		st.idle = k
		st.idles++
	}
}
