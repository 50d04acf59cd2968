package limiter

import (
	"maps"
	"math"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// opening is what unknown keys owe that get a state of their own: whole permits, which were
// charged at an instant.
type opening struct {
	at   time.Duration
	all  int64
	of   map[uint64]int64 // in place of all, by KeyID
	last int64            // of them, those that were charged at at
}

// ask returns the ask by which a known key owes permits more or, below zero, less. Of a window
// it gives back only what was charged last: the rest stands in other slots.
func (o *opening) ask(q *rules.Quota, permits float64, now time.Duration) Ask {
	switch n := int64(-permits); {
	case permits > 0:
		return Ask{Kind: Charge, N: int64(math.Ceil(permits))}
	case q.Algorithm.Windowed():
		return Ask{Kind: Return, N: min(n, o.last), Mark: int64(o.at)}
	default:
		return Ask{Kind: Return, N: n}
	}
}

// add adds to what unknown keys owe. It was advanced to now.
func (o *opening) add(q *rules.Quota, by *Owing, now time.Duration) {
	whole := func(permits float64) int64 {
		if permits > 0 {
			return int64(math.Ceil(permits))
		}
		return max(int64(permits), -o.last) // rounded up
	}
	if !q.Algorithm.Windowed() {
		o.last = math.MaxInt64
	}
	of := make(map[uint64]int64)
	for id, n := range o.of {
		of[id] = max(0, n+whole(by.All+by.Of[id]))
	}
	for id, n := range by.Of {
		if _, known := o.of[id]; !known {
			of[id] = max(0, o.all+whole(by.All+n))
		}
	}
	all := whole(by.All)
	o.all, o.of = max(0, o.all+all), of
	if all > 0 || !q.Algorithm.Windowed() {
		o.at, o.last = now, all
	} else {
		o.last += all
	}
}

// advance moves what is owed to now.
func (o *opening) advance(q *rules.Quota, now time.Duration) {
	if q.Algorithm.Windowed() {
		if now >= windowEnd(q, o.at) {
			*o = opening{}
		}
		return
	}
	earned := int64(max(0, now-o.at)) / interval(q.Rate)
	if earned == 0 {
		return
	}
	o.at += time.Duration(earned * interval(q.Rate))
	o.all = max(0, o.all-earned)
	for id, n := range o.of {
		if n -= earned; n > 0 {
			o.of[id] = n
		} else {
			delete(o.of, id)
		}
	}
}

// state returns the state of an unknown key, which was new when it began to owe.
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
		state.Do(o.at, Ask{Kind: Charge, N: n})
	}
	return state
}

// Owe implements [Keys]. It costs a lock for each key.
func (k *stateKeys) Owe(by Owing, now time.Duration) {
	rule := *k.rule.Load()
	rule.opening = rule.opening.clone()
	rule.opening.advance(rule.quota, now)
	before := rule.opening
	rule.opening.add(rule.quota, &by, now)
	k.rule.Store(&rule)
	k.states.table.each(func(n *node[guarded]) bool {
		key := []byte(n.key())
		permits := by.of(key)
		ask := before.ask(rule.quota, permits, now)
		n.kept.owe(now, &rule, &ask, permits)
		return true
	})
}

func (g *guarded) owe(now time.Duration, rule *keysRule, ask *Ask, permits float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dropped {
		return
	}
	g.settle()
	g.sides.owe(now, rule.quota, maker{algorithms: rule}, ask, permits)
	g.lend()
}

// clone returns a copy that shares nothing with o.
func (o opening) clone() opening {
	o.of = maps.Clone(o.of)
	return o
}

// Spent implements [Keys].
func (k *stateKeys) Spent(now time.Duration) (of map[uint64]float64, all bool) {
	rule, spent := k.rule.Load(), make(map[uint64]float64)
	o := rule.opening.clone()
	o.advance(rule.quota, now)
	for id, n := range o.of {
		spent[id] = float64(n)
	}
	k.states.table.each(func(n *node[guarded]) bool {
		g := &n.kept
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.dropped {
			return true
		}
		g.settle()
		spent[KeyID([]byte(n.key()))] = g.sides.spent(now, rule.quota, maker{algorithms: rule})
		g.lend()
		return true
	})
	return spent, k.states.table.indebted(instant(now)) == 0
}
