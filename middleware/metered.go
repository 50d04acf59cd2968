package middleware

import (
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/middleware/internal/meter"
)

// addEnded adds the ticket's keys to those that have ended.
func (t *Ticket) addEnded(e *endedUses, now time.Duration) {
	if !t.metered {
		return
	}
	busy, begun := t.measure(now)
	for i := range t.owed {
		if o := &t.owed[i]; o.rule.costs {
			e.add(t.keys[o.from:o.to], endedUse{busy: busy, took: max(0, now-t.start-t.waited), begun: begun, again: t.isAgain(i)})
		}
	}
}

// addRunning adds the time of a ticket that runs.
func (t *Ticket) addRunning(m *usageMeter) {
	if !t.metered || t.start >= m.now {
		return // it is added in the next interval
	}
	var u wire.Usage
	u.Busy, u.Begun = t.measure(m.now)
	t.addUsage(m, &u)
}

// addWhole adds a request that was not started, whose time is known at its end alone.
func (t *Ticket) addWhole(m *usageMeter, took time.Duration) {
	t.addUsage(m, &wire.Usage{Busy: took, Took: took, Begun: 1, Ended: 1})
}

// addUsage adds usage to the ticket's keys.
func (t *Ticket) addUsage(m *usageMeter, u *wire.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range t.owed {
		if o := &t.owed[i]; o.rule.costs {
			m.add(t.keys[o.from:o.to], u, t.isAgain(i))
		}
	}
}

// measure returns the ticket's time up to now that has not been added, and 1 if none has been. Time for
// which it waited for its client is left out.
func (t *Ticket) measure(now time.Duration) (busy time.Duration, begun int64) {
	if t.metedTo == 0 {
		begun = 1
	}
	waited := t.clientWait().Total()
	busy = max(0, now-max(t.start, t.metedTo)-(waited-t.waited))
	t.metedTo, t.waited = now, waited
	return busy, begun
}

func (t *Ticket) clientWait() *meter.Wait {
	if t.client == nil {
		return nil
	}
	return &t.client.Wait
}

// isAgain reports whether an earlier key of the ticket is of the same rule.
func (t *Ticket) isAgain(i int) bool { return i > 0 && t.owed[i-1].rule == t.owed[i].rule }
