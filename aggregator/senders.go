package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/wire"
)

// senders follows the sequence of each instance's packets, so that loss is
// known. It is not safe for concurrent use.
type senders struct {
	byName map[string]*sender
	swept  time.Time
}

type sender struct {
	incarnation uint64
	first       uint64 // sequence that was heard first: what came before is not missed
	last        uint64 // highest sequence seen
	window      uint64 // bit i: last-i was seen
	heard       time.Time
}

const (
	// senderLife is how long an instance that has gone silent is remembered: a
	// gap is told when it speaks again.
	senderLife = time.Minute
	// maxSenders bounds the table; packets of further instances are counted,
	// but their losses are not known.
	maxSenders = 100_000
	// reorder is how far behind the newest a packet may come and still be told
	// from one that came twice.
	reorder = 64
)

func (s *senders) len() int { return len(s.byName) }

// packet notes a packet. lost is how many packets before it are missing by what
// is known now; -1 when one that had been counted as missing came after all.
func (s *senders) packet(m wire.Meta, now time.Time) (lost int64, duplicate bool) {
	s.sweep(now)
	known := s.byName[string(m.Instance)]
	if known == nil {
		if len(s.byName) >= maxSenders {
			return 0, false
		}
		if s.byName == nil {
			s.byName = make(map[string]*sender)
		}
		known = &sender{}
		s.byName[string(m.Instance)] = known
	}
	known.heard = now
	if known.incarnation != m.Incarnation || known.last == 0 {
		// A new life. Sequences begin at 1, but this aggregator may have
		// started later than the instance, so nothing before counts as lost.
		*known = sender{incarnation: m.Incarnation, first: m.Seq, last: m.Seq, window: 1, heard: now}
		return 0, false
	}
	if m.Seq > known.last {
		step := m.Seq - known.last
		known.last = m.Seq
		known.window = known.window<<min(step, reorder) | 1
		return int64(step - 1), false
	}
	behind := known.last - m.Seq
	if behind >= reorder || known.window&(1<<behind) != 0 {
		return 0, true
	}
	known.window |= 1 << behind
	if m.Seq < known.first {
		return 0, false // overtaken by the first one heard, and never missed
	}
	return -1, false
}

func (s *senders) sweep(now time.Time) {
	if now.Sub(s.swept) < senderLife {
		return
	}
	s.swept = now
	for name, known := range s.byName {
		if now.Sub(known.heard) > senderLife {
			delete(s.byName, name)
		}
	}
}
