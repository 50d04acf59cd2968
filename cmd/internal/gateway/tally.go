package gateway

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Reason is the reason why a call was not used as sent, or why a connection was closed, as named
// in metrics.
type Reason string

// Reasons. Each door declares those that it counts.
const (
	Incomplete     Reason = "incomplete"      // a call without the description of a request, or the id of its end
	Ambiguous      Reason = "ambiguous"       // a header of the scheme is repeated
	Unauthorized   Reason = "unauthorized"    // a call without the token
	Unreadable     Reason = "unreadable"      // a call that is not of the protocol
	TooLarge       Reason = "too_large"       // a call, a frame or headers above their maximum
	Busy           Reason = "busy"            // a call refused because too many were in flight
	Slow           Reason = "slow"            // a call or a connection that exceeded its time limit
	UnknownPath    Reason = "unknown_path"    // a path that is no endpoint
	UnknownMessage Reason = "unknown_message" // a message with an unknown name
	UnknownEntry   Reason = "unknown_entry"   // an entry with an unknown key or unit, which is ignored
	TooMany        Reason = "too_many"        // descriptors, entries or hits above their maximum, which are ignored
	Unsupported    Reason = "unsupported"     // negative hits, or a descriptor's own limit, which are ignored
	NoID           Reason = "no_id"           // a request with a cost or a permit, but without an id for its end
	NoTicket       Reason = "no_ticket"       // the same, whose end will not be reported
	Unsendable     Reason = "unsendable"      // the gateway cannot send the rule's response
	Cut            Reason = "cut"             // a response that did not fit in a frame
	Panicked       Reason = "panic"           // a request that passed because the door panicked
	Invalid        Reason = "invalid"         // a connection that does not speak the protocol, or a frame whose content is not valid
	Fragmented     Reason = "fragmented"      // a connection with a frame in fragments
	Handshake      Reason = "handshake"       // a connection whose handshake failed
)

// Figures are the counters that all doors have.
type Figures struct {
	Passed, Refused int64 // requests decided
	Connections     int64 // open now
	Faults          map[Reason]int64
	Closed          map[Reason]int64 // connections closed by the door
}

// Tally counts what a door decides, ignores and closes, and logs the latter two at a limited rate
// for each reason. It is safe for concurrent use.
type Tally struct {
	log             *slog.Logger
	passed, refused atomic.Int64
	faults, closed  map[Reason]*eventCount // not changed once created
}

type eventCount struct {
	count atomic.Int64
	lines loglimit.Limit
}

// NewTally returns a tally that counts these reasons.
func NewTally(log *slog.Logger, faults, closed []Reason) *Tally {
	events := func(reasons []Reason) map[Reason]*eventCount {
		all := make(map[Reason]*eventCount, len(reasons))
		for _, r := range reasons {
			all[r] = new(eventCount)
		}
		return all
	}
	return &Tally{log: log, faults: events(faults), closed: events(closed)}
}

// Decided counts a decision.
func (t *Tally) Decided(passes bool) {
	if passes {
		t.passed.Add(1)
	} else {
		t.refused.Add(1)
	}
}

// Fault counts a call, or a part of one, that is not used as sent, and logs a warning. If text
// is empty, it logs nothing.
func (t *Tally) Fault(r Reason, text string, args ...any) { t.faults[r].add(t.log, text, args) }

// Closed counts a connection that the door closes, and logs a warning. If text is empty, it logs
// nothing.
func (t *Tally) Closed(r Reason, text string, args ...any) { t.closed[r].add(t.log, text, args) }

func (e *eventCount) add(log *slog.Logger, text string, args []any) {
	if e == nil {
		return // not declared; the call must not fail because of that
	}
	e.count.Add(1)
	if text != "" {
		e.lines.Warn(loglimit.LineRate{Burst: 1, Every: time.Minute}, log, text, args...)
	}
}

// Figures returns the counters, with those of the door's connections.
func (t *Tally) Figures(c connlimit.Stats) Figures {
	f := Figures{
		Passed: t.passed.Load(), Refused: t.refused.Load(), Connections: c.Connections, Faults: make(map[Reason]int64),
		Closed: map[Reason]int64{"idle": c.Displaced, "full": c.Full, "not_allowed": c.Strangers, "tls": c.NoTLS},
	}
	for r, e := range t.faults {
		f.Faults[r] = e.count.Load()
	}
	for r, e := range t.closed {
		f.Closed[r] = e.count.Load()
	}
	return f
}
