package oracle

import (
	"fmt"
	"slices"
	"time"
)

// Request has everything that an answer may depend on.
type Request struct {
	Target string
	Vary   string // value of the header that answers vary by
	User   string // name of the user, or empty
}

func (r Request) String() string {
	return fmt.Sprintf("%s with vary %q of user %q", r.Target, r.Vary, r.User)
}

// Served is an answer with the request that received it.
type Served struct {
	Process string
	Asked   Request
	Span    // the time from sending the request to its answer
	Made    Request
	Run     Span // the run of the handler that made the answer
}

// NotKept is a time for [Memory.Hold]: the process keeps no answers, and publishes no changes.
const NotKept = time.Duration(-1)

// Memory judges the answers that processes give from memory, or to several requests at once. Each
// must be made for such a request as received it. It must not be older than the rules in force
// allow, and its handler must have begun after the last change of its target. Changes reach other
// processes late, and faults may delay or lose them.
type Memory struct {
	Spread time.Duration // longest time in which a change reaches all processes
	Slack  time.Duration // largest difference between the ages that a process and this type measure

	holdings   []*holding
	changes    []change
	faults     []*memoryFault
	served     []Served
	quietUntil time.Duration
}

// holding is a time for which a process keeps answers.
type holding struct {
	process string
	keep    time.Duration
	span    Span
}

// change makes the answers of earlier runs invalid.
type change struct {
	process string // the process that made it, or empty
	target  string // empty means all
	alone   bool   // whether it concerns only the process that made it
	span    Span
}

// memoryFault is a time in which a process neither sends nor receives changes.
type memoryFault struct {
	process string // empty means all
	lost    bool   // whether they do not arrive later either
	span    Span
}

// Hold records that a process keeps answers for up to this time after their runs, or NotKept. If that
// is another time than before, it uses none of its earlier answers. Until confirm is called with the
// time at which all this is certain, it may act as before.
func (m *Memory) Hold(process string, keep, asked time.Duration) (confirm func(time.Duration)) {
	now := &holding{process, keep, Span{asked, Forever}}
	m.holdings = append(m.holdings, now)
	return func(confirmed time.Duration) {
		for _, h := range m.holdings {
			if h == now || h.process != process || h.span.To != Forever {
				continue
			}
			h.span.To = confirmed
			if h.keep != keep {
				m.changes = append(m.changes, change{process: process, alone: true, span: Span{asked, confirmed}})
			}
		}
	}
}

// Change records that a process has answered a request that changes a target. If process is empty,
// an operator has changed all targets.
func (m *Memory) Change(process, target string, made Span) {
	m.changes = append(m.changes, change{process: process, target: target, span: made})
}

// Fault records that changes do not reach a process and its own reach no other, until the time that
// is passed to end. If lost is false, they must have arrived by then. An empty process means all.
func (m *Memory) Fault(process string, lost bool, from time.Duration) (end func(time.Duration)) {
	f := &memoryFault{process, lost, Span{from, Forever}}
	m.faults = append(m.faults, f)
	return func(to time.Duration) { f.span.To = to }
}

// Answered records an answer.
func (m *Memory) Answered(s Served) { m.served = append(m.served, s) }

// Check judges the answers that are old enough for all excuses to be known. It returns the first
// violation, and then none for a quiet period.
func (m *Memory) Check(now time.Duration, stalls *Stalls) (found *Violation) {
	m.served = slices.DeleteFunc(m.served, func(s Served) bool {
		if s.To > now-stallDelay {
			return false
		}
		if text := m.judge(&s, stalls); text != "" && found == nil && s.To >= m.quietUntil {
			m.quietUntil = now + quietPeriod
			found = &Violation{At: s.To, Invariant: I5, Subject: fmt.Sprintf("%v at %s", s.Asked, s.Process), Text: fmt.Sprintf(
				"answered from %.3fs to %.3fs by a run from %.3fs to %.3fs: %s", s.From.Seconds(), s.To.Seconds(), s.Run.From.Seconds(), s.Run.To.Seconds(), text)}
		}
		return true
	})
	old := now - horizon
	m.holdings = slices.DeleteFunc(m.holdings, func(h *holding) bool { return h.span.To < old })
	m.changes = slices.DeleteFunc(m.changes, func(c change) bool { return c.span.To < old })
	m.faults = slices.DeleteFunc(m.faults, func(f *memoryFault) bool { return f.span.To < old })
	return found
}

// judge returns a text that names what an answer violates, or an empty one.
func (m *Memory) judge(s *Served, stalls *Stalls) string {
	if s.Made != s.Asked {
		return fmt.Sprintf("it was made for %v", s.Made)
	}
	if keep := m.longest(s.Process, s.Span); s.From > stalls.Extended(s.Run.To, keep+m.Slack, s.From) {
		return fmt.Sprintf("it was %.3fs old, at most %v", (s.From - s.Run.To).Seconds(), keep)
	}
	for i := range m.changes {
		c := &m.changes[i]
		if c.span.From <= s.Run.From || c.alone && c.process != s.Process || c.target != "" && c.target != s.Asked.Target {
			continue
		}
		if due, ok := m.dueAt(c, s, stalls); ok && s.From > due {
			return fmt.Sprintf("%s changed it from %.3fs to %.3fs, and no earlier answer may be used from %.3fs on", c, c.span.From.Seconds(), c.span.To.Seconds(), due.Seconds())
		}
	}
	return ""
}

func (c *change) String() string {
	switch {
	case c.alone:
		return "a reload"
	case c.process == "":
		return "an operator"
	}
	return c.process
}

// longest returns the longest time for which the process may keep answers within the span.
func (m *Memory) longest(process string, within Span) (keep time.Duration) {
	for _, h := range m.holdings {
		if _, ok := h.span.overlap(within); ok && h.process == process {
			keep = max(keep, h.keep)
		}
	}
	return keep
}

// dueAt returns the time from which the answer's process must know a change, or false if it may not.
func (m *Memory) dueAt(c *change, s *Served, stalls *Stalls) (due time.Duration, ok bool) {
	if slices.ContainsFunc(m.holdings, func(h *holding) bool {
		_, together := h.span.overlap(c.span)
		return together && h.process == c.process && h.keep == NotKept && !c.alone
	}) {
		return 0, false
	}
	if c.process == s.Process {
		return c.span.To, true
	}
	due = stalls.Extended(c.span.To, m.Spread, s.From)
	for _, f := range m.faults { // in the order in which they began
		if f.process != "" && f.process != s.Process && f.process != c.process || f.span.From > due || f.span.To < c.span.From {
			continue
		}
		if f.lost || f.span.To == Forever {
			return 0, false
		}
		due = max(due, stalls.Extended(f.span.To, 0, s.From))
	}
	return due, true
}
