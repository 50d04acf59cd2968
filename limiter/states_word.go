package limiter

import (
	"sync/atomic"
)

// lentWord is the word of a key's state while it is lent: takes swap it without the key's lock.
// A holder of the lock that needs the state settles first, which takes the word back, and lends
// it again afterwards. In between the word is gone, and takes queue for the lock.
//
// Only the word is lent. The rest of the state (see line) changes under the lock alone. A word
// with reservations is not lent, since a second word is in force then.
//
// The arithmetic is fixed. A word that came back under another quota is not lent again, so a
// take that has read the word before cannot swap it by the earlier rate. Such a key is replaced
// once its quota stays: see renew.
type lentWord struct {
	plan *words       // fixed; nil if no word is ever lent
	word atomic.Int64 // gone if it is in the state
	// stamp is twice the state's clock (see clock), to within the grain of takes. It is one
	// more if the state has more than the word that the mark of a take needs.
	stamp atomic.Uint64
}

// clockGrain is the precision of the words' clocks, if no clock of the user's can set them back
// or if the caller passes the time. A store for each take would cost more than the take, and
// make all wait for one line of the cache.
const clockGrain = int64(1e9)

// lendable returns the arithmetic of words that can be lent, or nil. A queue that shapes has a
// promise in addition to its word.
func lendable(a Algorithm) *words {
	if p, ok := a.(*words); ok && !p.shape {
		return p
	}
	return nil
}

// lend lends the word if possible. The caller holds the lock.
func (g *keyStates) lend() {
	s, ok := g.state.(*wordState)
	switch {
	case !ok || s.late != 0:
		return
	case g.lent.plan == nil || s.gcra != g.lent.plan.gcra:
		g.calm = min(g.calm+1, calmEnough)
		return
	}
	if max(s.word, s.mark()) <= s.last {
		s.back = 0 // later takes have later marks without it
	}
	stamp := uint64(s.last) << 1
	if s.back != 0 {
		stamp++
	}
	g.lent.stamp.Store(stamp)
	g.lent.word.Store(s.word)
}

// settle takes the word back. The caller holds the lock.
func (g *keyStates) settle() {
	if g.lent.plan == nil {
		return
	}
	if word := g.lent.word.Swap(gone); word != gone {
		s := g.state.(*wordState)
		s.word, s.last = word, max(s.last, int64(g.lent.stamp.Load()>>1))
	}
}

// takeTokens takes n, as wordState.Do does. It returns false if that needs the lock.
func (w *lentWord) takeTokens(p *words, t, grain, n int64) (stepResult, bool) {
	if _, ok := w.advance(t, grain); !ok {
		return stepResult{}, false
	}
	for {
		old := w.word.Load()
		if old == gone {
			return stepResult{}, false
		}
		next, v := p.step(old, t, n, 0)
		if next == old || w.word.CompareAndSwap(old, next) {
			return v, true
		}
	}
}

// do executes ask and sets r, which must be zero, as wordState.Do does. It returns false, and
// does nothing, if that needs the lock.
func (w *lentWord) do(p *words, t, grain int64, ask *Request, r *Result) bool {
	stamp, ok := w.advance(t, grain)
	if !ok || ask.Kind >= Return {
		return false
	}
	ask.clamp()
	for {
		old := w.word.Load()
		if old == gone {
			return false
		}
		next, v, taken := p.execute(old, t, ask)
		if v.delay > 0 || taken > 0 && stamp&1 != 0 {
			return false
		}
		if next != old && !w.word.CompareAndSwap(old, next) {
			continue
		}
		p.decide(v, &r.Decision)
		if r.Taken = taken; taken > 0 {
			r.setMark(next, t)
		}
		return true
	}
}

// advance moves the clock to t, unless t is within the grain, and returns the stamp before. It
// returns false if the clock went back: only the state knows by how much it may.
func (w *lentWord) advance(t, grain int64) (stamp uint64, ok bool) {
	for {
		stamp = w.stamp.Load()
		last := int64(stamp >> 1)
		if t <= last+grain || w.stamp.CompareAndSwap(stamp, uint64(t)<<1|stamp&1) { // before the swap, since settle must see it
			return stamp, t >= last
		}
	}
}

// busy reports whether the key is certainly in use, without reading the state.
func (w *lentWord) busy(now int64) bool {
	if w.plan == nil {
		return false
	}
	word := w.word.Load()
	return word > now && word-now <= w.plan.fill && now >= int64(w.stamp.Load()>>1)
}

// calmEnough is the number of consecutive asks under one quota after which a key is replaced.
// If quotas alternate from ask to ask, a replacement would be useless.
const calmEnough = 16

// renew replaces a key that has been under another quota since it entered with one that lends
// its word.
func (k *table) renew(hash uint64, n *keyNode, from algorithms) {
	s, g := k.stripe(hash), &n.kept
	s.mu.Lock()
	defer s.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calm = 0
	if _, ok := g.state.(*wordState); !ok || g.dropped {
		return
	}
	a, err := from.algorithmFor(g.quota)
	p := lendable(a)
	if err != nil || p == nil {
		return
	}
	renewed := n.emptyCopy()
	renewed.kept.initStates(g.sides, p)
	g.drop()
	k.replace(hash, n, renewed)
}
