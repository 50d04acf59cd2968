package limiter

import (
	"sync/atomic"
)

// lentWord is the word of a key's state while it is lent: takes swap it without the key's
// lock, as those of [Keys] do. Whoever holds the lock and needs the state settles first, which
// takes the word back, and lends it again afterwards. Meanwhile the word is gone, and takes
// queue for the lock.
//
// Only the word is lent. What is beside it in the state (see line) changes under the lock
// alone, and a word with reservations is not lent, since a second one is in force then.
//
// The arithmetic is fixed: a word that came back under another quota is not lent again, so a
// take that has read the word before cannot swap it by the rate of before. Such a key is
// replaced once its quota stays: see renew.
type lentWord struct {
	plan *words       // fixed; nil: there is never a word
	word atomic.Int64 // gone: it is in the state
	// last is the state's clock (see clock), to within the grain of takes.
	last atomic.Int64
}

// clockGrain is how exactly the words' clocks are known that no clock of the user's can set
// back: a store for each take would cost more than the take, and make all wait for one line of
// the cache.
const clockGrain = int64(1e9)

// lendable returns the arithmetic of words that can be lent, or nil: a queue that shapes keeps
// a promise beside its word.
func lendable(a Algorithm) *words {
	if p, ok := a.(*words); ok && !p.shape {
		return p
	}
	return nil
}

// lend lends the word if it can be. The caller holds the lock.
func (g *guarded) lend() {
	s, ok := g.state.(*wordState)
	switch {
	case !ok || s.late != 0:
		return
	case g.lent.plan == nil || s.gcra != g.lent.plan.gcra:
		g.calm = min(g.calm+1, calmEnough)
		return
	}
	g.lent.last.Store(s.last)
	g.lent.word.Store(s.word)
}

// settle takes the word back. The caller holds the lock.
func (g *guarded) settle() {
	if g.lent.plan == nil {
		return
	}
	if word := g.lent.word.Swap(gone); word != gone {
		s := g.state.(*wordState)
		s.word, s.last = word, max(s.last, g.lent.last.Load())
	}
}

// take takes n, as wordState.Do does, and returns false if that needs the lock.
func (w *lentWord) take(p *words, t, grain, n int64) (verdict, bool) {
	if last := w.last.Load(); t > last+grain {
		reach(&w.last, t) // before the swap: who settles must know it
	} else if t < last { // the state knows by how much a clock may go back
		return verdict{}, false
	}
	for {
		old := w.word.Load()
		if old == gone {
			return verdict{}, false
		}
		next, v := p.step(old, t, n, 0)
		if next == old || w.word.CompareAndSwap(old, next) {
			return v, true
		}
	}
}

// busy reports whether it is certain, without a look at the state, that the key is in use.
func (w *lentWord) busy(now int64) bool {
	if w.plan == nil {
		return false
	}
	word := w.word.Load()
	return word > now && word-now <= w.plan.fill && now >= w.last.Load()
}

// calmEnough is how often a key is asked in turn under one quota before it is replaced: where
// quotas alternate from ask to ask that would be for nothing.
const calmEnough = 16

// renew replaces a key that has been under another quota since it entered by one that lends
// its word.
func (k *states) renew(hash uint64, n *node[guarded], from algorithms) {
	s, g := k.table.stripe(hash), &n.kept
	s.mu.Lock()
	defer s.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calm = 0
	state, ok := g.state.(*wordState)
	if !ok || g.dropped {
		return
	}
	a, err := from.of(g.quota)
	p := lendable(a)
	if err != nil || p == nil {
		return
	}
	state.gcra = p.gcra
	by := n.anew()
	by.kept.begin(g.sides, p)
	g.dropped, g.sides = true, sides{}
	k.table.replace(hash, n, by)
}
