package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/middleware/internal/meter"
	"github.com/hotparam/hotparam/rules"
)

// Ticket is a request that has passed and not ended. [Ticket.End] ends it and charges its
// cost; [Ticket.Start] has its time charged before. A ticket that is neither started nor ended
// costs nothing, but it keeps its permits for ever if rules have concurrency. A nil *Ticket holds
// nothing, and its End does nothing.
type Ticket struct {
	guard  *Guard
	owed   []owed
	keys   []byte
	leases []semaphore.Lease

	started bool
	metered bool                    // whether a rule finds hot keys by their cost
	start   time.Duration           // see runningTickets.epoch
	metedTo time.Duration           // time up to which usageMeter has added it; 0 if it has not
	waited  time.Duration           // part of that time for which it waited for its client
	client  *meter.Client           // nil unless a ticket was ever metered
	cancel  context.CancelCauseFunc // ends the handler's context; nil if no rule has limit.cancel
	charged int64                   // milliseconds that are charged
	place   runningPlace            // in Guard.running
}

// owed is one key of a rule that counts costs.
type owed struct {
	rule     *rule
	spec     *limitSpec
	hash     uint64
	from, to int  // the key in the ticket's keys; empty if the rule has one bucket
	free     bool // whether the cost is counted but charged to no limit
	permit   bool // whether the request asked for a permit of its back end
}

// reuse returns the ticket to the pool. It drops a ticket that had leases, since a second End
// of that ticket would release the leases of another request.
func (t *Ticket) reuse() {
	const keep = 64 << 10
	held := len(t.leases) > 0
	clear(t.owed)
	t.owed, t.keys, t.leases = t.owed[:0], t.keys[:0], nil
	t.started, t.metered, t.metedTo, t.waited, t.charged = false, false, 0, 0, 0
	t.cancel = nil
	if t.client != nil {
		t.client.Wait = meter.Wait{}
	}
	if cap(t.keys) <= keep && !held {
		t.guard.tickets.Put(t)
	}
}

// Counts reports whether a rule charges the request for its cost in this unit. It returns false
// for a nil *Ticket.
func (t *Ticket) Counts(u rules.Unit) bool {
	if t == nil {
		return false
	}
	for i := range t.owed {
		if t.owed[i].rule.Count == u {
			return true
		}
	}
	return false
}

// Metered reports whether a rule finds hot keys by their cost, so that the ticket has to be started
// even by code that knows the time at the end. It returns false for a nil *Ticket.
func (t *Ticket) Metered() bool { return t != nil && t.metered }
