package redislimiter

import (
	"fmt"
	"time"
)

// Shares is what an instance holds of limits that a fleet shares, such as a guard's. Its methods
// are called by the goroutine of [Members.Run], and must not block.
//
// An instance that joins a fleet holds nothing at first, so that no share is there twice. It
// gets what another one has left, earns the rest, or begins together with the others.
type Shares interface {
	// HandOver gives up what is held, and returns it for Inherit of another instance. Nil
	// means that there is nothing.
	HandOver() []byte
	// Inherit adds what another instance has left some time ago.
	Inherit(handover []byte, age time.Duration) error
	// Endow adds what is earned in a time without any instance or, below zero, all.
	Endow(idle time.Duration)
}

// Bounds of handovers. One is claimed by the first heartbeat of an instance that wants one.
const (
	handoverLasts = 10 * time.Minute
	maxHandovers  = 64
	maxHandover   = 1 << 18 // bytes
	// fleetKept is how long it is known that there was a fleet. After that an instance
	// counts as the first one.
	fleetKept = 32 * 24 * time.Hour
)

// beginsAfter returns how long a fleet takes to begin: within it those that start together find
// each other, and those that Redis has lost come back.
func beginsAfter(every time.Duration) time.Duration { return 2 * every }

// sharing is what is known of this instance's share. It belongs to Run's goroutine.
type sharing struct {
	started  time.Time
	answered time.Time // the last heartbeat
	heard    bool      // a heartbeat has been answered
	holds    bool      // it is settled what this instance began with
	claimed  bool      // it wants no handover any more
	began    int64     // the fleet that it began with; 0 if it joined one
	deaths   int64
}

// args returns what a heartbeat says of the share.
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

// beatAnswer is what lua/members_beat.lua returns.
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

// pass has the share follow an answer.
func (m *Members) pass(a beatAnswer, rejoined bool, now time.Time) {
	s := &m.share
	if m.cfg.Shares == nil {
		return
	}
	if rejoined && a.deaths != s.deaths && s.heard {
		// The others have counted without this instance, and may have earned its share since.
		_ = m.cfg.Shares.Inherit(m.cfg.Shares.HandOver(), now.Sub(s.answered)) // it is its own
	}
	if !s.heard && !a.begun {
		s.began = a.began
	}
	s.heard, s.answered, s.deaths = true, now, a.deaths
	if a.handover != "" {
		s.claimed = true
		m.inherit(a)
	}
	switch {
	case s.holds:
	case s.began == 0 || s.began != a.began: // it has joined a fleet
		s.holds = true
	case a.begun:
		s.holds, s.claimed = true, s.claimed || a.idle < 0
		m.cfg.Shares.Endow(a.idle)
	}
	m.settled(s.holds)
}

func (m *Members) settled(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Settled = is
}

// inherit adds a handover.
func (m *Members) inherit(a beatAnswer) {
	if err := m.cfg.Shares.Inherit([]byte(a.handover), a.age); err != nil {
		m.cfg.Logger.Warn("live instances: what another instance has left is of no use", "error", err)
		return
	}
	m.mu.Lock()
	m.stats.Inherited++
	m.mu.Unlock()
}

// assume has this instance count with the assumed number of instances if it has no answer for
// as long as a fleet takes to begin.
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
		m.cfg.Logger.Warn("live instances: their number is not known, and this one is assumed until Redis answers: the file's instances sets it", "instances", n)
	}
	if m.cfg.Shares != nil {
		m.cfg.Shares.Endow(-1)
	}
}

// handOver returns what this instance leaves, or "".
func (m *Members) handOver() string {
	if m.cfg.Shares == nil {
		return ""
	}
	data := m.cfg.Shares.HandOver()
	if len(data) > maxHandover {
		m.cfg.Logger.Warn("live instances: what this instance leaves is too long to hand over", "bytes", len(data))
		return ""
	}
	return string(data)
}
