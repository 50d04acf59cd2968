package limiter

import (
	"sync/atomic"
	"time"
)

// atomicLine is a line that is taken from without a lock. What is kept beside the word is
// rarely needed, and allocated when it is. It has one word: if the quota changes while
// something is reserved, the bucket has a lock from then on.
type atomicLine struct {
	word atomic.Int64
	rest atomic.Pointer[lineRest] // nil: all zero
}

type lineRest struct {
	back atomic.Int64

	// These are fixed.
	born int64
	turn
}

// store sets it to l.
func (c *atomicLine) store(l *line) {
	c.word.Store(l.word)
	if l.back == 0 && l.born == 0 && l.turn == (turn{}) {
		return
	}
	r := &lineRest{turn: l.turn, born: l.born}
	r.back.Store(l.back)
	c.rest.Store(r)
}

// line returns the line whose word was read before.
func (c *atomicLine) line(word int64) line {
	l := line{word: word}
	if r := c.rest.Load(); r != nil {
		l.back, l.born, l.turn = r.back.Load(), r.born, r.turn
	}
	return l
}

// beside returns what is kept beside the word, and allocates it if needed.
func (c *atomicLine) beside() *lineRest {
	if c.rest.Load() == nil {
		c.rest.CompareAndSwap(nil, &lineRest{})
	}
	return c.rest.Load()
}

func (c *atomicLine) back() int64 {
	if r := c.rest.Load(); r != nil {
		return r.back.Load()
	}
	return 0
}

// take takes n in place, and reports false when the bucket is gone or unborn. It is lock-free:
// a swap fails only when another one has succeeded, and a denial, the common case of a hot
// bucket, swaps nothing.
func (g *gcra) take(c *atomicLine, t, n int64) (verdict, bool) {
	for {
		old := c.word.Load()
		if old < 0 {
			return verdict{}, false
		}
		next, v := g.step(old, t, n, 0)
		if v.delay > 0 {
			reach(&g.due, t+v.delay)
		}
		if next == old || c.word.CompareAndSwap(old, next) {
			return v, true
		}
	}
}

// do executes ask in place, like take, for all kinds but Return and Forget.
func (g *gcra) do(c *atomicLine, t int64, ask *Ask) (Result, bool) {
	for {
		old := c.word.Load()
		if old < 0 {
			return Result{}, false
		}
		back := c.back() // before the swap: what is returned meanwhile may count twice, and never not at all
		next, v, taken := g.ask(old, t, ask)
		if v.delay > 0 && taken > 0 {
			reach(&g.due, t+v.delay) // before the swap: who changes the quota must know it
		}
		if next != old && !c.word.CompareAndSwap(old, next) {
			continue
		}
		var o Receipt
		mark := int64(0)
		if taken > 0 { // as name does, but the result is written once, where it is returned
			mark, o.At = next+back, time.Duration(t)
		}
		return Result{Decision: g.decision(v), Taken: taken, Mark: mark, Receipt: o}, true
	}
}

// name sets the mark and the instant of a take.
func (r *Result) name(mark, t int64) { r.Mark, r.Receipt.At = mark, time.Duration(t) }

// giveBack executes a Return, and reports false when the bucket is gone. Its callers are
// serialized, so that none sees a new word with an old back.
func (g *gcra) giveBack(c *atomicLine, t int64, ask *Ask) (Result, bool) {
	for {
		old := c.word.Load()
		if old < 0 {
			return Result{}, false
		}
		l := c.line(old)
		back := l.back
		g.returned(&l, t, ask)
		if l.word == old || c.word.CompareAndSwap(old, l.word) {
			if l.back != back {
				c.beside().back.Add(l.back - back)
			}
			return Result{Decision: g.decision(verdict{ask.N >= 0, g.free(l.word, t), 0, 0})}, true
		}
	}
}
