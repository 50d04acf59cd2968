package limiter

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Owing is the number of permits that the keys of a limit additionally owe, whether the keys
// are known or not. Negative numbers forgive debts.
type Owing struct {
	All float64
	// Of holds the debts of single keys in addition to All, by [KeyID].
	Of map[uint64]float64
}

// KeyID returns an identifier of a key that is the same in every process and does not reveal
// the key. Keys with the same identifier owe the same.
func KeyID(key []byte) uint64 {
	sum := sha256.Sum256(key)
	return binary.BigEndian.Uint64(sum[:])
}

// forKey returns the additional debt of a key.
func (o *Owing) forKey(key []byte) float64 {
	if len(o.Of) == 0 {
		return o.All
	}
	return o.All + o.Of[KeyID(key)]
}

// oweTokens takes permits from l at t, or returns them if permits is negative. Returned permits
// count as returned from the head of the line, so that marks stay in order.
func (g *gcra) oweTokens(l *takeLine, t int64, permits float64) {
	ns := permits * float64(g.interval)
	if ns < 0 {
		back := min(int64(-ns), max(0, l.word-t))
		l.word -= back
		l.back += back
		return
	}
	start := max(l.word, t)
	l.word = max(start, min(start+int64(math.Ceil(min(ns, maxFill))), t+maxFill))
}

// owePermits makes the state of q owe permits. If q's algorithm makes no state, owePermits does
// nothing.
func (s *sides) owePermits(now time.Duration, q *rules.Quota, from maker, ask *Request, permits float64) {
	if s.setQuota(now, q, from) == nil {
		owePermits(s.state, now, ask, permits)
	}
}

// owePermits makes a state owe permits: in the word of a bucket, and by ask in any other state.
func owePermits(state State, now time.Duration, ask *Request, permits float64) {
	if lock, ok := state.(*penalty); ok {
		state = lock.inner
	}
	switch o := state.(type) {
	case *wordState:
		t, _ := o.advance(now)
		offsets := o.includeReservations(t)
		o.oweTokens(&o.takeLine, t, permits)
		o.excludeReservations(offsets)
	case *warmState:
		t, _ := o.advance(now)
		offsets := o.includeReservations(t)
		o.storeIdle(t)
		o.oweTokens(&o.takeLine, t, permits)
		o.excludeReservations(offsets)
	default:
		state.Do(now, *ask)
	}
}

// spent returns how many permits of q are taken or owed. It returns 0 if q's algorithm makes no
// state.
func (s *sides) spent(now time.Duration, q *rules.Quota, from maker) float64 {
	r, err := s.do(now, q, from, &Request{Kind: Peek})
	if err != nil {
		return 0
	}
	return max(float64(q.Burst-r.Remaining), owedBy(s.state))
}

// owedBy returns how many permits of a state are taken, including those beyond its burst. It
// returns 0 if that is not known.
func owedBy(s State) float64 {
	if lock, ok := s.(*penalty); ok {
		s = lock.inner
	}
	if w, ok := s.(interface{ takenPermits() float64 }); ok {
		return w.takenPermits()
	}
	return 0
}

func (w *window[F]) takenPermits() float64 { return float64(w.total) }
func (s *wordState) takenPermits() float64 {
	return float64(max(0, s.word-s.last)) / float64(s.interval)
}
func (s *warmState) takenPermits() float64 {
	return float64(max(0, s.word-s.last)) / float64(s.interval)
}
