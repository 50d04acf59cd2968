package middleware

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Cost is the cost of a request. Each rule uses the field of its unit.
type Cost struct {
	Bytes int64         // length of the response's body
	Units int64         // sum of the handler's calls of AddCost
	Time  time.Duration // duration of the handler
}

// maxCost bounds the cost of one request so that no sum overflows: 1 TiB, or as many
// units or milliseconds.
const maxCost = 1 << 40

// inUnit returns the cost in a rule's unit. Time is in milliseconds, rounded up.
func (c *Cost) inUnit(u rules.Unit) int64 {
	n := int64(0)
	switch u {
	case rules.Requests:
		n = 1
	case rules.Bytes:
		n = c.Bytes
	case rules.Millis:
		n = int64(c.Time / time.Millisecond)
		if c.Time%time.Millisecond > 0 {
			n++
		}
	case rules.Units:
		n = c.Units
	}
	return min(max(n, 0), maxCost)
}

// spent collects the cost that a handler adds through the context of its request.
type spent struct {
	units atomic.Int64
	outer *spent // the sum of an outer guard, or nil
}

type spentKey struct{}

// withSpent returns a context in which a handler can add to the cost of its request.
func withSpent(ctx context.Context) (context.Context, *spent) {
	outer, _ := ctx.Value(spentKey{}).(*spent)
	sum := &spent{outer: outer}
	return context.WithValue(ctx, spentKey{}, sum), sum
}

// CollectCost returns a context in which a handler can call [AddCost], and a function that
// returns the sum. It is for callers of [Guard.Begin]; [Guard.Handler] collects the cost itself.
//
//	ctx, units := middleware.CollectCost(ctx)
//	defer func() { ticket.End(middleware.Cost{Units: units()}) }()
func CollectCost(ctx context.Context) (context.Context, func() int64) {
	ctx, sum := withSpent(ctx)
	return ctx, sum.units.Load
}

// AddCost adds n units to the cost of the request of this context, for rules that count
// units: rows read, tokens generated, or whatever is scarce. n may be negative. It may be
// called any number of times, by any goroutine, until the handler returns. A request
// without AddCost costs nothing. If no rule counts units, AddCost does nothing.
func AddCost(ctx context.Context, n int64) {
	sum, _ := ctx.Value(spentKey{}).(*spent)
	for ; sum != nil; sum = sum.outer {
		sum.units.Add(min(max(n, -maxCost), maxCost))
	}
}
