package limiter

import (
	"maps"
	"math"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// opening is the debt that unknown keys begin with when they get a state. It was charged at one
// instant; for windows, in whole permits.
type opening struct {
	chargedAt time.Duration
	all       float64
	byKey     map[uint64]float64 // debts of single keys in place of all, by KeyID
	last      float64            // part of the debt that was charged to a window at chargedAt
}

// request returns the ask that increases a known key's debt by permits, or reduces it if permits is
// negative. For a window it returns only permits of the last charge: the rest is in other
// slots.
func (o *opening) request(q *rules.Quota, permits float64, now time.Duration) Request {
	switch n := int64(-permits); {
	case permits > 0:
		return Request{Kind: Charge, N: int64(math.Ceil(permits))}
	case q.Algorithm.Windowed():
		return Request{Kind: Return, N: min(n, int64(o.last)), Mark: int64(o.chargedAt)}
	default:
		return Request{Kind: Return, N: n}
	}
}

// add adds owing to the debts of unknown keys. The caller has advanced o to now.
func (o *opening) add(q *rules.Quota, owing *Owing, now time.Duration) {
	windowed := q.Algorithm.Windowed()
	charged := func(permits float64) float64 {
		switch {
		case !windowed:
			return permits
		case permits > 0:
			return math.Ceil(permits)
		}
		return max(math.Trunc(permits), -o.last)
	}
	byKey := make(map[uint64]float64)
	for id, n := range o.byKey {
		byKey[id] = max(0, n+charged(owing.All+owing.Of[id]))
	}
	for id, n := range owing.Of {
		if _, known := o.byKey[id]; !known {
			byKey[id] = max(0, o.all+charged(owing.All+n))
		}
	}
	all := charged(owing.All)
	o.all, o.byKey = max(0, o.all+all), byKey
	if all > 0 || !windowed {
		o.chargedAt, o.last = now, all
	} else {
		o.last += all
	}
}

// advance moves the debts to now.
func (o *opening) advance(q *rules.Quota, now time.Duration) {
	switch {
	case o.all == 0 && len(o.byKey) == 0:
		return
	case q.Algorithm.Windowed():
		if now >= WindowEnd(q, o.chargedAt) {
			*o = opening{}
		}
		return
	}
	earned := float64(max(0, now-o.chargedAt)) / float64(q.Rate.Interval())
	o.chargedAt = max(o.chargedAt, now)
	o.all = max(0, o.all-earned)
	for id, n := range o.byKey {
		if n -= earned; n > o.all {
			o.byKey[id] = n
		} else {
			delete(o.byKey, id)
		}
	}
}

// state returns the state of an unknown key, which was new when it began to owe. It returns nil
// if the key owes nothing.
func (o *opening) state(a Algorithm, q *rules.Quota, key []byte) State {
	n := o.all
	if len(o.byKey) > 0 {
		if owed, ok := o.byKey[KeyID(key)]; ok {
			n = owed
		}
	}
	if n <= 0 {
		return nil
	}
	state := a.New(q, o.chargedAt)
	if state != nil {
		owePermits(state, o.chargedAt, &Request{Kind: Charge, N: int64(math.Ceil(n))}, n)
	}
	return state
}

// clone returns a copy that shares nothing with o.
func (o opening) clone() opening {
	o.byKey = maps.Clone(o.byKey)
	return o
}
