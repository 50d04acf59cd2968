package limiter

import (
	"fmt"
	"math/bits"

	"github.com/hotparam/hotparam"
)

// inherit is setQuota for a quota that is to take another's place without a lock.
func (g *gcra) inherit(q *hotparam.Quota) error {
	if err := q.Validate(); err != nil {
		return fmt.Errorf("limiter: %w", err)
	}
	if !bucketed(q) || q.Penalty != 0 {
		return errOtherKind(q)
	}
	return g.setQuota(q)
}

func errOtherKind(q *hotparam.Quota) error {
	return fmt.Errorf("limiter: cannot go on with algorithm %q here, make a new one: %w", q.Algorithm, ErrUnsupported)
}

// adapted is the word with which a bucket of old goes on with g at t: as many tokens
// are missing, if there is room for as many.
func (g *gcra) adapted(old *gcra, word, t int64) int64 {
	if word <= t || g.interval == old.interval {
		return min(word, t+g.fill)
	}
	hi, lo := bits.Mul64(uint64(word-t), uint64(g.interval))
	if hi >= uint64(old.interval) {
		return t + g.fill
	}
	missing, rest := bits.Div64(hi, lo, uint64(old.interval))
	if rest > 0 {
		missing++
	}
	return t + int64(min(missing, uint64(g.fill)))
}

// descend is the word of a bucket of g by the terms of heir, which took its place
// some time, perhaps after others.
func (g *gcra) descend(heir *gcra, word int64) int64 {
	for g != heir {
		next := g.successor.Load()
		word = next.adapted(g, word, next.since)
		g = next
	}
	return word
}

// succeed makes next take the place of g at t.
func (g *gcra) succeed(next *gcra, t int64) {
	next.since = t
	next.ahead.Store(g.ahead.Load())
	g.successor.Store(next)
}

// same tells whether two reckon alike.
func (g *gcra) same(h *gcra) bool {
	return g.interval == h.interval && g.burst == h.burst && g.missing == h.missing && g.shape == h.shape && g.leaky == h.leaky
}
