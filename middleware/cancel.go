package middleware

import (
	"context"
	"errors"
)

// ErrHeld is the cause of the end of a handler's context whose request was canceled, by a rule with
// limit.cancel: the request's key is held, and it ran without a permit.
var ErrHeld = errors.New("the request was canceled: its key is held for what it costs")

// Context returns a context for the handler of a started ticket. If a rule has limit.cancel, it ends
// with the cause [ErrHeld] some 100 ms after the request's key is held, unless the request has a
// permit. Otherwise it is ctx itself. It has to be called before Start, and ends with the ticket.
// Guard.Handler calls it itself.
func (t *Ticket) Context(ctx context.Context) context.Context {
	if t.cancels() {
		ctx, t.cancel = context.WithCancelCause(ctx)
	}
	return ctx
}

// cancels reports whether a rule of the ticket has limit.cancel.
func (t *Ticket) cancels() bool {
	if t == nil || !t.metered {
		return false
	}
	for i := range t.owed {
		if t.owed[i].cancels() {
			return true
		}
	}
	return false
}

func (o *owed) cancels() bool { return o.rule.costs && o.spec.limit != nil && o.spec.limit.Cancel }

// cancelIfHeld cancels a running request of a key that has been held since it was admitted. The
// caller keeps the ticket from being ended.
func (t *Ticket) cancelIfHeld() {
	if t.cancel == nil || !t.metered {
		return
	}
	defer t.guard.countPanic()
	for i := range t.owed {
		o := &t.owed[i]
		if o.permit || !o.cancels() {
			continue
		}
		entry := t.guard.hot.Lookup(o.hash, t.keys[o.from:o.to])
		if entry == nil || !entry.Hot.Hold.Holds() || entry.Hot.IsExempt() {
			continue
		}
		t.cancel(ErrHeld)
		t.cancel = nil
		t.guard.stats.Canceled.Add(1)
		return
	}
}
