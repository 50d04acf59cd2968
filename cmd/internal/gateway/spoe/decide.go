package spoe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/middleware"
)

// Names of messages. They need no prefix, because HAProxy's configuration defines them in the
// engine's own section.
const (
	messageCheck = "check"
	messageDone  = "done"
)

// argsPool holds slices for the arguments of messages.
var argsPool = sync.Pool{New: func() any { return new([]arg) }}

// answer appends the ACK of a NOTIFY to b. It returns an error if the NOTIFY is not valid.
func (d *Door) answer(ctx context.Context, b []byte, f *frame, frameSize int) ([]byte, error) {
	room := argsPool.Get().(*[]arg)
	defer func() {
		clear(*room)
		argsPool.Put(room)
	}()
	a := actions{buf: appendHead(b, typeAck, f.stream, f.id), max: frameSize}
	args, err := eachMessage(f.payload, *room, func(name []byte, args []arg) {
		switch string(name) {
		case messageCheck:
			d.check(ctx, &a, args)
		case messageDone:
			d.endRequest(&a, args)
		default:
			d.Fault(gateway.UnknownMessage, "a message has an unknown name and is ignored", "message", fmt.Sprintf("%.64q", name), "known", messageCheck+", "+messageDone)
		}
	})
	*room = args[:0]
	if err != nil {
		return b, err
	}
	putLength(a.buf)
	return a.buf, nil
}

// check decides on a request. A request without a method or a URI passes without variables.
func (d *Door) check(ctx context.Context, a *actions, args []arg) {
	var c check
	if !c.parse(args) {
		d.Fault(gateway.Incomplete, "a check lacks the request's method or URI; the request passes", "needed", "method=method uri=pathq", "message", messageCheck)
		return
	}
	timeout := d.Timeout
	if c.timeout > 0 {
		timeout = c.timeout
	}
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, began.Add(timeout))
	defer cancel()
	call := gateway.Call{Method: c.method, Target: c.uri, Header: c.header, Addr: c.addr, Caller: c.caller, Context: c.context}
	decision, ticket := d.Decider.Begin(ctx, &call)
	if !d.holdTicket(a, &c, ticket, began) {
		decision = gateway.NoPlace()
	}
	d.Decided(decision.Allowed)
	if !a.setDecision(&decision) {
		d.Fault(gateway.Cut, "an answer does not fit in a frame; HAProxy gets it without its body", "frame_size", a.max)
	}
}

// holdTicket keeps the ticket until a done message reports the end of the request. If there will be
// none, it ends the ticket at once, without cost. It returns false if there is no place for the
// ticket.
func (d *Door) holdTicket(a *actions, c *check, ticket *middleware.Ticket, began time.Time) bool {
	if ticket == nil {
		return true
	}
	if !c.hold || d.Tickets == nil {
		ticket.End(middleware.Cost{})
		d.Fault(gateway.NoTicket, "a rule counts costs or limits concurrency, but the check lacks hold=bool(true): the request costs nothing")
		return true
	}
	id, ok := d.Tickets.Hold(ticket) // if !ok, Hold has already ended the ticket and counted it
	if ok {
		a.setString("ticket", joinTicket(id, began))
	}
	return ok
}

// endRequest ends a request and charges its cost.
func (d *Door) endRequest(a *actions, args []arg) {
	var m done
	if !m.parse(args) {
		d.Fault(gateway.Incomplete, "a message has no ticket and is ignored", "needed", "ticket=var(txn.hp.ticket)", "message", messageDone)
		return
	}
	id, took, ok := splitTicket(m.ticket, time.Now())
	if !ok || d.Tickets == nil {
		return
	}
	if m.hasMs {
		took = time.Duration(min(m.ms, maxMillis)) * time.Millisecond
	}
	ended := d.Tickets.End(id, middleware.Cost{Bytes: m.bytes, Units: m.units, Time: took}) == gateway.Ended
	a.setBool("ended", ended)
}

// maxMillis is the longest duration of a request that a message may report: one day.
const maxMillis = 24 * 60 * 60 * 1000
