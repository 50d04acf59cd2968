package redislimiter

import (
	"fmt"
	"time"
)

// Shares is an instance's part of the limits that a fleet shares, such as a guard's. Its methods
// are called by the goroutine of [Members.Run], and must not block.
//
// An instance that joins a fleet holds nothing at first, so that no share exists twice. It
// inherits the share that another instance left, earns the rest, or begins together with the
// others.
type Shares interface {
	// HandOver gives up the held share, and returns it for Inherit of another instance. Nil means
	// that there is none.
	HandOver() []byte
	// Inherit adds the share that another instance left an age ago.
	Inherit(handover []byte, age time.Duration) error
	// Endow adds the permits earned in idle, a time without any instance. Below zero it adds all.
	Endow(idle time.Duration)
}

// Bounds of handovers. A handover is claimed by the first heartbeat of an instance that wants
// one.
const (
	handoverLasts = 10 * time.Minute
	maxHandovers  = 64
	maxHandover   = 1 << 18 // bytes
	// fleetKept is how long Redis remembers that there was a fleet. After that an instance counts
	// as the first one.
	fleetKept = 32 * 24 * time.Hour
)

// beginsAfter returns the time that a fleet takes to begin. Within it, instances that start
// together find each other, and instances that Redis has lost rejoin.
func beginsAfter(every time.Duration) time.Duration { return 2 * every }

// sharing is the state of this instance's share. It belongs to Run's goroutine.
type sharing struct {
	started  time.Time
	answered time.Time // time of the last heartbeat that was answered
	heard    bool      // whether a heartbeat has been answered
	holds    bool      // whether it is settled with how much this instance began
	claimed  bool      // whether it wants no handover any more
	began    int64     // start of the fleet with which it began, which identifies that fleet; 0 if it joined one
	deaths   int64
}

// args returns the arguments of a heartbeat that describe the share.
func (s *sharing) args(every time.Duration) []any {
	flag := func(set bool) string {
		if set {
			return "1"
		}
		return "0"
	}
	wants := !s.claimed && time.Since(s.started) < handoverLasts
	return []any{flag(s.holds), flag(wants), beginsAfter(every).Milliseconds(), fleetKept.Milliseconds(), handoverLasts.Milliseconds()}
}

// beatAnswer is the answer of lua/members_beat.lua.
type beatAnswer struct {
	count         int
	isNew, begun  bool
	deaths, began int64
	idle, age     time.Duration
	handover      string
}

func readBeat(cmd once) (a beatAnswer, err error) {
	all, err := cmd.Slice()
	if err != nil {
		return a, err
	}
	numbers := make([]int64, min(len(all), 7))
	for i := range numbers {
		n, ok := all[i].(int64)
		if !ok {
			return a, fmt.Errorf("unexpected answer %v", all)
		}
		numbers[i] = n
	}
	if len(all) == 8 {
		a.handover, _ = all[7].(string)
		a.age = time.Duration(numbers[6]) * time.Millisecond
	} else if len(all) != 6 {
		return a, fmt.Errorf("unexpected answer %v", all)
	}
	a.count, a.isNew, a.deaths, a.began, a.begun = int(numbers[0]), numbers[1] == 1, numbers[2], numbers[3], numbers[4] == 1
	a.idle = time.Duration(numbers[5]) * time.Millisecond
	return a, nil
}

// updateShare updates the share according to an answer.
func (m *Members) updateShare(a beatAnswer, rejoined bool, now time.Time) {
	s := &m.share
	if m.cfg.Shares == nil {
		return
	}
	if rejoined && a.deaths != s.deaths && s.heard {
		// The others have counted without this instance, and may have earned its share since
		// then.
		_ = m.cfg.Shares.Inherit(m.cfg.Shares.HandOver(), now.Sub(s.answered)) // it inherits its own handover
	}
	if !s.heard && !a.begun {
		s.began = a.began
	}
	s.heard, s.answered, s.deaths = true, now, a.deaths
	if a.handover != "" {
		s.claimed = true
		m.inheritHandover(a)
	}
	switch {
	case s.holds:
	case s.began == 0 || s.began != a.began: // it has joined a fleet
		s.holds = true
	case a.begun:
		s.holds, s.claimed = true, s.claimed || a.idle < 0
		m.cfg.Shares.Endow(a.idle)
	}
	m.setSettled(s.holds)
}

func (m *Members) setSettled(settled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Settled = settled
}

// inheritHandover adds a handover.
func (m *Members) inheritHandover(a beatAnswer) {
	if err := m.cfg.Shares.Inherit([]byte(a.handover), a.age); err != nil {
		m.cfg.Logger.Warn("live instances: the limits handed over by another instance cannot be used", "error", err)
		return
	}
	m.mu.Lock()
	m.stats.Inherited++
	m.mu.Unlock()
}

// assume makes this instance count with the assumed number of instances, if no heartbeat has been
// answered within the time that a fleet takes to begin.
func (m *Members) assume(now time.Time) {
	s := &m.share
	if s.heard || s.holds || now.Sub(s.started) < beginsAfter(m.cfg.Every) {
		return
	}
	s.holds, s.claimed = true, true
	m.mu.Lock()
	m.stats.Settled = true
	known := m.stats.Count > 0 // from an earlier Run
	if !known {
		m.stats.Assumed = m.cfg.Assumed()
	}
	n := m.stats.Assumed
	m.mu.Unlock()
	if !known {
		m.cfg.Logger.Warn("live instances: their number is not known; until Redis answers this one is assumed, which instances in the file sets", "instances", n)
	}
	if m.cfg.Shares != nil {
		m.cfg.Shares.Endow(-1)
	}
}

// handOver returns the share that this instance leaves, or "".
func (m *Members) handOver() string {
	if m.cfg.Shares == nil {
		return ""
	}
	data := m.cfg.Shares.HandOver()
	if len(data) > maxHandover {
		m.cfg.Logger.Warn("live instances: the limits of this instance are too long to hand over", "bytes", len(data))
		return ""
	}
	return string(data)
}
