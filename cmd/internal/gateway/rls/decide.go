package rls

import (
	"context"
	"errors"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// ShouldRateLimit implements Envoy's rate limit service. The descriptors of a call pass together
// or not at all. It returns an error only for a call that Envoy never makes.
func (d *Door) ShouldRateLimit(ctx context.Context, req *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	switch {
	case req.GetDomain() == "":
		return nil, status.Error(codes.InvalidArgument, "the domain is empty")
	case len(req.GetDescriptors()) == 0:
		return nil, status.Error(codes.InvalidArgument, "there are no descriptors")
	}
	descriptors := req.GetDescriptors()
	if len(descriptors) > maxDescriptors {
		d.Fault(gateway.TooMany, "a call has too many descriptors: only the first are used", "descriptors", len(descriptors), "used", maxDescriptors)
		descriptors = descriptors[:maxDescriptors]
	}
	var few [2]ask
	asks := few[:0]
	for _, desc := range descriptors {
		asks = append(asks, d.parse(req, desc))
	}
	d.endReported(asks)

	ctx, cancel := withEarlierDeadline(ctx)
	defer cancel()
	decisions := d.decide(ctx, asks)
	response := answer(asks, decisions, len(req.GetDescriptors()))
	d.Decided(response.GetOverallCode() == ratelimit.RateLimitResponse_OK)
	return response, nil
}

// withEarlierDeadline returns a context that ends before the call's deadline, so that a request
// that waits is answered in time. Envoy's default deadline is 20 ms.
func withEarlierDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(end)
	margin := min(max(left/8, time.Millisecond), left/2, 50*time.Millisecond)
	return context.WithDeadline(ctx, end.Add(-margin))
}

// decide returns the decision on each descriptor. One that reports an end passes. The others pass
// together or not at all, and so do several hits of one.
func (d *Door) decide(ctx context.Context, asks []ask) []rules.Decision {
	decisions := make([]rules.Decision, len(asks))
	var few [2]int
	descriptors := few[:0] // index of each call's descriptor
	for i := range asks {
		if decisions[i].Allowed = true; asks[i].kind != toDecide {
			continue
		}
		for range max(1, asks[i].hits) {
			descriptors = append(descriptors, i)
		}
	}
	switch {
	case len(descriptors) == 0:
	case len(descriptors) == 1 && !asks[descriptors[0]].call.Peek:
		alone := descriptors[0]
		var ticket *middleware.Ticket
		decisions[alone], ticket = d.Decider.Begin(ctx, &asks[alone].call)
		if !d.holdTicket(ctx, &asks[alone], ticket) {
			decisions[alone] = gateway.NoPlace()
		}
	default:
		d.decideTogether(ctx, asks, descriptors, decisions)
	}
	return decisions
}

// decideTogether decides a call for each element of descriptors, which is the index of its
// descriptor.
func (d *Door) decideTogether(ctx context.Context, asks []ask, descriptors []int, decisions []rules.Decision) {
	calls := make([]gateway.Call, len(descriptors))
	for c, i := range descriptors {
		calls[c] = asks[i].call
	}
	got, tickets := d.Decider.Together(ctx, calls)
	for p, i := range descriptors {
		if first := p == 0 || descriptors[p-1] != i; first {
			if decisions[i] = got[p]; !d.holdTicket(ctx, &asks[i], tickets[p]) {
				decisions[i] = gateway.NoPlace()
			}
			continue
		}
		tickets[p].End(middleware.Cost{})
		if decisions[i].Allowed { // the last hit has the least Remaining
			decisions[i] = got[p]
		}
	}
}

// holdTicket keeps the ticket of a request until its end is reported. It ends the ticket at once if no
// report will come. A request without an id is one case: its hits are then its units, and its
// time and bytes are not known. A call that Envoy cancelled is the other: the client is gone. A
// call that exceeded its deadline is held, since Envoy lets its request pass and reports the end.
// It returns false if there is no place for the ticket.
func (d *Door) holdTicket(ctx context.Context, a *ask, ticket *middleware.Ticket) bool {
	switch {
	case ticket == nil:
	case errors.Is(ctx.Err(), context.Canceled):
		ticket.End(middleware.Cost{})
	case a.id != "":
		return d.Tickets.HoldAs(a.id, ticket)
	default:
		if !ticket.Counts(rules.Units) {
			d.Fault(gateway.NoID, "a rule needs the end of a request, but the descriptor has no entry id")
		}
		ticket.End(middleware.Cost{Units: a.hits})
	}
	return true
}

// endReported ends the requests whose end the call reports. Several descriptors may report parts of one
// request's cost.
func (d *Door) endReported(asks []ask) {
	for i := range asks {
		a := &asks[i]
		if a.kind != ofEnd {
			continue
		}
		if a.id == "" {
			continue // merged into an earlier descriptor
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
		d.Tickets.End(a.id, cost)
	}
}

// addTo adds the descriptor's hits to cost.
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
