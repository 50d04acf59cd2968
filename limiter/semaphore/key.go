package semaphore

import (
	"time"

	"github.com/hotparam/hotparam"
)

// keyState is what is held of one key's permits, one at least, and who waits for
// them. The lock of its stripe guards it.
type keyState struct {
	name    string
	permits int64
	held    int64         // more than permits, after they became fewer
	line    *queue        // nil: nobody has waited yet
	since   time.Duration // when it began to be held
	mean    time.Duration // how long a lease was held, lately; 0: none is back yet
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

// denied is a denial; k may be nil, and then all permits are free.
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

// estimate is how long it would take until ask is served, if those ahead are as many
// as now and like it: as long as a lease was held lately, for each time that all
// permits have to come back. Before one is back it is known only that they are held
// longer than they have been.
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

// newKey is a key of which nothing is held yet; nil: there is no room for it. It must
// be granted to somebody at once.
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

// How many keys of a stripe are kept to be used again, and how big its map may stay
// when the keys have gone.
const (
	maxIdleKeys = 16
	smallMap    = 64
)

// drop forgets a key of which nothing is held any more, and for which nobody waits:
// had they waited, they would hold it.
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
