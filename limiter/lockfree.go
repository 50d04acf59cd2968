package limiter

import "sync/atomic"

// take steps the word in place; false when the bucket is gone or unborn. It is lock-free:
// whoever loses the swap has lost it to one who made progress, and a denial,
// the common case of a hot bucket, swaps nothing.
func (g *gcra) take(word *atomic.Int64, t, n int64) (verdict, bool) {
	for {
		old := word.Load()
		if old < 0 {
			return verdict{}, false
		}
		next, v := g.step(old, t, n, 0)
		if next == old || word.CompareAndSwap(old, next) {
			return v, true
		}
	}
}

// do asks in place, as take does.
func (g *gcra) do(word *atomic.Int64, t int64, ask *Ask) (Result, bool) {
	for {
		old := word.Load()
		if old < 0 {
			return Result{}, false
		}
		next, v, taken := g.ask(old, t, ask)
		if next == old || word.CompareAndSwap(old, next) {
			return Result{Decision: g.decision(v), Taken: taken}, true
		}
	}
}

// charge takes n of the word in place, whatever is there; false as take is, and
// lock-free as it is.
func (g *gcra) charge(word *atomic.Int64, t, n int64) bool {
	for {
		old := word.Load()
		if old < 0 {
			return false
		}
		if next, _ := g.charged(old, t, n); next == old || word.CompareAndSwap(old, next) {
			return true
		}
	}
}

// giveBack undoes a take of n; false when the bucket is gone. It needs no clock: a
// word that falls behind it is a full bucket.
func (g *gcra) giveBack(word *atomic.Int64, n int64) bool {
	for {
		old := word.Load()
		if old < 0 {
			return old == unborn
		}
		if next := g.returned(old, n); next == old || word.CompareAndSwap(old, next) {
			return true
		}
	}
}
