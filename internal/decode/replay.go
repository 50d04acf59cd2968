package decode

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// replays are the signed packets that have arrived, so that none is believed twice. A packet is
// accepted only within the window around its send time, so it is enough to keep the recent
// ones. Each incarnation of an instance has its own record. To the senders, a packet of an
// earlier incarnation would begin a new one.
type replays struct {
	mu    sync.Mutex
	lives map[life]*sequence
	swept time.Time
}

type life struct {
	instance    string
	incarnation uint64
}

// maxLives bounds the incarnations that are kept. When there are more, new ones are refused.
// Only a holder of the key can cause that.
const maxLives = 100_000

// isNew records a packet, and reports whether it had not arrived before.
func (r *replays) isNew(m *wire.Meta, now time.Time, window time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now, window)
	s := r.lives[life{string(m.Instance), m.Incarnation}]
	if s == nil {
		if len(r.lives) >= maxLives {
			return false
		}
		if r.lives == nil {
			r.lives = make(map[life]*sequence)
		}
		r.lives[life{string(m.Instance), m.Incarnation}] = &sequence{first: m.Seq, last: m.Seq, heard: now}
		return true
	}
	s.heard = now
	return s.isNew(m.Seq)
}

// sweep forgets the lives whose packets are all outside the window by now. The last packet of a
// life arrived at most one window before its send time.
func (r *replays) sweep(now time.Time, window time.Duration) {
	if now.Sub(r.swept).Abs() < window {
		return
	}
	r.swept = now
	for l, s := range r.lives {
		if now.Sub(s.heard) > 2*window {
			delete(r.lives, l)
		}
	}
}

// sequence records the numbers that have arrived. While seen is nil, all from first to last
// have.
type sequence struct {
	first, last uint64
	seen        *seen
	heard       time.Time
}

// isNew records a number. It reports false if the number was recorded before, or is too far
// behind the newest to be known.
func (s *sequence) isNew(seq uint64) bool {
	if s.seen == nil {
		if seq == s.last+1 { // the usual case
			s.last++
			return true
		}
		s.seen = new(seen)
		for q := s.last; q >= s.first && s.last-q < reorder; q-- {
			s.seen.mark(q)
		}
	}
	if seq > s.last {
		s.seen.skip(s.last+1, seq)
		s.last = seq
		return true
	}
	return s.last-seq < reorder && s.seen.mark(seq)
}
