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
	at   time.Duration
	all  float64
	of   map[uint64]float64 // debts of single keys in place of all, by KeyID
	last float64            // part of the debt that was charged to a window at the instant at
}

// ask returns the ask that increases a known key's debt by permits, or reduces it if permits is
// negative. For a window it returns only permits of the last charge: the rest is in other
// slots.
func (o *opening) ask(q *rules.Quota, permits float64, now time.Duration) Request {
	switch n := int64(-permits); {
	case permits > 0:
		return Request{Kind: Charge, N: int64(math.Ceil(permits))}
	case q.Algorithm.Windowed():
		return Request{Kind: Return, N: min(n, int64(o.last)), Mark: int64(o.at)}
	default:
		return Request{Kind: Return, N: n}
	}
}

// add adds by to the debts of unknown keys. The caller has advanced o to now.
func (o *opening) add(q *rules.Quota, by *Owing, now time.Duration) {
	windowed := q.Algorithm.Windowed()
	part := func(permits float64) float64 {
		switch {
		case !windowed:
			return permits
		case permits > 0:
			return math.Ceil(permits)
		}
		return max(math.Trunc(permits), -o.last)
	}
	of := make(map[uint64]float64)
	for id, n := range o.of {
		of[id] = max(0, n+part(by.All+by.Of[id]))
	}
	for id, n := range by.Of {
		if _, known := o.of[id]; !known {
			of[id] = max(0, o.all+part(by.All+n))
		}
	}
	all := part(by.All)
	o.all, o.of = max(0, o.all+all), of
	if all > 0 || !windowed {
		o.at, o.last = now, all
	} else {
		o.last += all
	}
}

// advance moves the debts to now.
func (o *opening) advance(q *rules.Quota, now time.Duration) {
	switch {
	case o.all == 0 && len(o.of) == 0:
		return
	case q.Algorithm.Windowed():
		if now >= WindowEnd(q, o.at) {
			*o = opening{}
		}
		return
	}
	earned := float64(max(0, now-o.at)) / float64(q.Rate.Interval())
	o.at = max(o.at, now)
	o.all = max(0, o.all-earned)
	for id, n := range o.of {
		if n -= earned; n > o.all {
			o.of[id] = n
		} else {
			delete(o.of, id)
		}
	}
}

// state returns the state of an unknown key, which was new when it began to owe. It returns nil
// if the key owes nothing.
func (o *opening) state(a Algorithm, q *rules.Quota, key []byte) State {
	n := o.all
	if len(o.of) > 0 {
		if own, ok := o.of[KeyID(key)]; ok {
			n = own
		}
	}
	if n <= 0 {
		return nil
	}
	state := a.New(q, o.at)
	if state != nil {
		owe(state, o.at, &Request{Kind: Charge, N: int64(math.Ceil(n))}, n)
	}
	return state
}

// clone returns a copy that shares nothing with o.
func (o opening) clone() opening {
	o.of = maps.Clone(o.of)
	return o
}
