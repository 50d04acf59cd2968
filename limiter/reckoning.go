package limiter

import (
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// reckoning is the arithmetic of all keys of wordKeys under one quota, and its successor. A
// key that was not asked for some time goes through all changes since, so that it earns at
// each rate for as long as that was in force.
type reckoning struct {
	gcra
	successor atomic.Pointer[reckoning] // nil while it is in force
	since     int64                     // when it replaced the one before
	owing     *Owing                    // what all keys owed more from then on; nil means nothing
	unknown   unknownWords

	// states has the keys from now on, after the last arithmetic of one word.
	states *stateKeys // nil while the keys are here
	last   *reckoning
}

// succeed makes next the successor of r at t.
func (r *reckoning) succeed(next *reckoning, t int64) {
	next.since = t
	next.inherit(&r.gcra)
	if next.same(&r.gcra) {
		next.due.Store(r.due.Load())
	}
	r.successor.Store(next)
}

// descend converts the line of a key from a bucket of r to one of heir, a successor of r
// through any number of others. A nil key stands for the one that owes most.
func (r *reckoning) descend(heir *reckoning, l *line, key []byte) {
	for r != heir {
		next := r.successor.Load()
		next.changed(&r.gcra, l, next.since)
		if next.owing != nil {
			owed := next.owing.most()
			if key != nil {
				owed = next.owing.of(key)
			}
			next.owe(l, next.since, owed)
		}
		r = next
	}
}

// latest returns the latest word of a key that had this line under r, or a later one.
func (r *reckoning) latest(l line) int64 {
	for next := r.successor.Load(); next != nil; next = r.successor.Load() {
		next.changed(&r.gcra, &l, next.since)
		if next.owing != nil {
			next.owe(&l, next.since, next.owing.most())
		}
		r = next
	}
	return l.word
}

// same reports whether two have the same arithmetic.
func (g *gcra) same(h *gcra) bool {
	return g.interval == h.interval && g.burst == h.burst && g.missing == h.missing && g.shape == h.shape && g.leaky == h.leaky
}

// plain reports whether a bucket of quota q can replace g in one word.
func (g *gcra) plain(q *rules.Quota) bool {
	return bucketed(q) && q.Penalty == 0 && (q.Algorithm == rules.LeakyBucket) == g.leaky
}

// equals reports whether q has the arithmetic of g.
func (g *gcra) equals(q *rules.Quota) bool {
	h, err := ofQuota(q)
	return err == nil && g.same(h)
}
