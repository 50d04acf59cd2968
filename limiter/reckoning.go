package limiter

import (
	"sync/atomic"

	"github.com/hotparam/hotparam"
)

// reckoning is the arithmetic of all keys of wordKeys under one quota, and what took its
// place: a key that was not asked for some time goes through all changes since, so that it
// has earned at each rate while that held.
type reckoning struct {
	gcra
	successor atomic.Pointer[reckoning] // nil: it holds
	since     int64                     // when it took the place of the one before

	// Where the keys have states elsewhere from now on, after the last arithmetic.
	states *stateKeys // nil: they are here
	last   *reckoning
}

// succeed makes next take the place of r at t.
func (r *reckoning) succeed(next *reckoning, t int64) {
	next.since = t
	next.inherit(&r.gcra)
	r.successor.Store(next)
}

// descend makes l, which was a bucket's of r, one of heir's, which took its place some
// time, perhaps after others.
func (r *reckoning) descend(heir *reckoning, l *line) {
	for r != heir {
		next := r.successor.Load()
		next.changed(&r.gcra, l, next.since)
		r = next
	}
}

// same tells whether two reckon alike.
func (g *gcra) same(h *gcra) bool {
	return g.interval == h.interval && g.burst == h.burst && g.missing == h.missing && g.shape == h.shape && g.leaky == h.leaky
}

// plain tells whether a quota of a bucket of this kind can take g's place in one word.
func (g *gcra) plain(q *hotparam.Quota) bool {
	return bucketed(q) && q.Penalty == 0 && (q.Algorithm == hotparam.LeakyBucket) == g.leaky
}

// equals tells whether q reckons as g does.
func (g *gcra) equals(q *hotparam.Quota) bool {
	h, err := ofQuota(q)
	return err == nil && g.same(h)
}
