package rls

import (
	"context"
	"errors"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/middleware"
)

// ShouldRateLimit implements Envoy's rate limit service. The descriptors of a call pass together
// or not at all. An error is for a call that Envoy does not make; by failure_mode_deny Envoy
// lets its request pass.
func (d *Door) ShouldRateLimit(ctx context.Context, req *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	switch {
	case req.GetDomain() == "":
		return nil, status.Error(codes.InvalidArgument, "the domain is empty")
	case len(req.GetDescriptors()) == 0:
		return nil, status.Error(codes.InvalidArgument, "there are no descriptors")
	}
	d.stats.Calls.Add(1)
	descriptors := req.GetDescriptors()
	if len(descriptors) > maxDescriptors {
		d.fault(TooMany, "a call has too many descriptors: the first are used", "descriptors", len(descriptors), "used", maxDescriptors)
		descriptors = descriptors[:maxDescriptors]
	}
	var few [2]ask
	asks := few[:0]
	for _, desc := range descriptors {
		asks = append(asks, d.read(req, desc))
	}
	d.end(asks)

	ctx, cancel := inTime(ctx)
	defer cancel()
	decisions := d.decide(ctx, req.GetDomain(), asks)
	response := answer(asks, decisions, len(req.GetDescriptors()))
	if response.GetOverallCode() == ratelimit.RateLimitResponse_OVER_LIMIT {
		d.stats.Limited.Add(1)
	}
	return response, nil
}

// inTime returns a context that ends before the call's deadline, so that the answer to a request
// that waits comes in time. Envoy's default is 20 ms for all.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(end)
	back := min(max(left/8, time.Millisecond), left/2, 50*time.Millisecond)
	return context.WithDeadline(ctx, end.Add(-back))
}

// decide returns the decision on each descriptor. What only tells an end passes.
func (d *Door) decide(ctx context.Context, domain string, asks []ask) []hotparam.Decision {
	decisions := make([]hotparam.Decision, len(asks))
	deciding, alone := 0, -1
	for i := range asks {
		decisions[i].Allowed = true
		if asks[i].decides() {
			deciding++
			alone = i
		}
	}
	switch {
	case deciding == 0:
	case deciding == 1 && asks[alone].hits == 1:
		a := &asks[alone]
		var ticket *middleware.Ticket
		if a.kind == ofRequest {
			decisions[alone], ticket = d.config.Decider.Begin(ctx, &a.call)
		} else {
			decisions[alone], ticket = d.config.Decider.Enter(ctx, domain, a.params)
		}
		d.hold(ctx, a, ticket)
	default:
		d.decideTogether(ctx, domain, asks, decisions)
	}
	return decisions
}

// decides reports whether the descriptor needs a decision.
func (a *ask) decides() bool { return a.kind == ofRequest || a.kind == ofResource }

// decideTogether decides on several descriptors, or on several hits of one.
func (d *Door) decideTogether(ctx context.Context, domain string, asks []ask, decisions []hotparam.Decision) {
	var parts []gateway.Part
	var of []int // of each part: its descriptor
	for i := range asks {
		a := &asks[i]
		if !a.decides() {
			continue
		}
		part := gateway.Part{Resource: domain, Params: a.params, Peek: a.hits == 0}
		if a.kind == ofRequest {
			part.Call = &a.call
		}
		for range max(1, a.hits) {
			parts, of = append(parts, part), append(of, i)
		}
	}
	got, tickets := d.config.Decider.Together(ctx, parts)
	for p, i := range of {
		if first := p == 0 || of[p-1] != i; first {
			decisions[i] = got[p]
			d.hold(ctx, &asks[i], tickets[p])
			continue
		}
		tickets[p].End(middleware.Cost{})
		if decisions[i].Allowed { // the last hit that passes leaves the least
			decisions[i] = got[p]
		}
	}
}

// hold keeps the ticket of a request until its end is told. Without an id it never is, so that
// the hits are the cost: no time has passed, and no bytes are known. Nor is it told of a request
// whose client has gone meanwhile, so that Envoy has cancelled the call; after a call that took
// too long, Envoy lets the request pass and tells its end.
func (d *Door) hold(ctx context.Context, a *ask, ticket *middleware.Ticket) {
	switch {
	case ticket == nil:
	case errors.Is(ctx.Err(), context.Canceled):
		ticket.End(middleware.Cost{})
	case a.id != "":
		d.config.Tickets.HoldAs(a.id, ticket)
	default:
		if !ticket.Counts(hotparam.Units) {
			d.fault(NoID, "a rule needs to be told when a request ends, but its descriptor has no entry id")
		}
		ticket.End(middleware.Cost{Units: a.hits})
	}
}

// end ends the requests whose end is told. Several descriptors may tell parts of one cost.
func (d *Door) end(asks []ask) {
	for i := range asks {
		a := &asks[i]
		if a.kind != ofEnd {
			continue
		}
		d.stats.Ends.Add(1)
		if a.id == "" {
			continue // told with an earlier one
		}
		var cost middleware.Cost
		for j := i; j < len(asks); j++ {
			if same := &asks[j]; same.kind == ofEnd && same.id == a.id {
				same.addTo(&cost)
				if j > i {
					same.id = ""
				}
			}
		}
		d.config.Tickets.End(a.id, cost)
	}
}

// addTo adds what the descriptor tells to the cost of its request.
func (a *ask) addTo(cost *middleware.Cost) {
	if a.hits <= 0 {
		return
	}
	switch a.unit {
	case "bytes":
		cost.Bytes += a.hits
	case "ms":
		cost.Time += time.Duration(min(a.hits, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	case "units":
		cost.Units += a.hits
	}
}
