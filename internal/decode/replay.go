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
	lives map[life]*signedLife
	swept time.Time
}

type life struct {
	instance    string
	incarnation uint64
}

// signedLife records the packets of a life.
type signedLife struct {
	sequence
	heard time.Time
}

// maxLives bounds the incarnations that are kept. When there are more, new ones are refused.
// Only a holder of the key can cause that.
const maxLives = 100_000

// isNew records a packet, and reports whether it had not arrived before.
func (r *replays) isNew(m *wire.Meta, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	s := r.lives[life{string(m.Instance), m.Incarnation}]
	if s == nil {
		if len(r.lives) >= maxLives {
			return false
		}
		if r.lives == nil {
			r.lives = make(map[life]*signedLife)
		}
		r.lives[life{string(m.Instance), m.Incarnation}] = &signedLife{sequence{first: m.Seq, last: m.Seq}, now}
		return true
	}
	s.heard = now
	return s.isNew(m.Seq)
}

// sweep forgets the lives whose packets are all outside the window by now. The last packet of a
// life arrived at most one window before its send time.
func (r *replays) sweep(now time.Time) {
	if now.Sub(r.swept).Abs() < replayWindow {
		return
	}
	r.swept = now
	for l, s := range r.lives {
		if now.Sub(s.heard) > 2*replayWindow {
			delete(r.lives, l)
		}
	}
}
