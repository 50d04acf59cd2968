package rls

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

// callKey is the key of a call's cancel function in its context.
type callKey struct{}

// Kinds of methods of other services.
const (
	ofHealth     = iota // a health check, which is answered at once
	ofStream            // a health or reflection stream, which stays open
	otherMethods        // number of kinds
)

// maxOthers is the maximum number of in-flight calls of each kind. The limits are separate, so
// that neither kind takes the place of the other or of rate limit calls.
var maxOthers = [otherMethods]int64{ofHealth: 1024, ofStream: 128}

// kindOf returns the kind of a method of another service, or isCall=true for a rate limit call.
func kindOf(method string) (kind int, isCall bool) {
	switch method {
	case ratelimit.RateLimitService_ShouldRateLimit_FullMethodName:
		return 0, true
	case healthpb.Health_Check_FullMethodName:
		return ofHealth, false
	}
	return ofStream, false
}

// tap is called for each new stream, by the goroutine of its connection. It refuses a call if too
// many are in flight. It sets the deadline of a call that has none before callTimeout:
// otherwise a peer that sends a message byte by byte would keep the call in flight forever.
func (d *Door) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	kind, isCall := kindOf(info.FullMethodName)
	inFlight, limit := &d.calls, d.maxCalls
	if !isCall {
		inFlight, limit = &d.others[kind], maxOthers[kind]
	}
	if inFlight.Load() >= limit {
		d.Fault(gateway.Busy, "refused a call: too many are in flight", "method", info.FullMethodName, "calls", limit)
		return ctx, status.Error(codes.ResourceExhausted, "too many calls in flight")
	}
	if !isCall && kind == ofStream {
		return ctx, nil
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d.callTimeout {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.callTimeout)
	return context.WithValue(ctx, callKey{}, cancel), nil
}

// callStats counts the in-flight calls, and those that failed before they reached the door. It
// implements [stats.Handler].
type callStats struct{ door *Door }

// TagRPC implements [stats.Handler].
func (callStats) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if kind, isCall := kindOf(info.FullMethodName); !isCall {
		return context.WithValue(ctx, otherMethod{}, kind)
	}
	return ctx
}

// otherMethod is the context key of the kind of a call of another service.
type otherMethod struct{}

// HandleRPC implements [stats.Handler].
func (s callStats) HandleRPC(ctx context.Context, event stats.RPCStats) {
	now := &s.door.calls
	kind, isOther := ctx.Value(otherMethod{}).(int)
	if isOther {
		now = &s.door.others[kind]
	}
	switch e := event.(type) {
	case *stats.Begin:
		now.Add(1)
	case *stats.End:
		now.Add(-1)
		cancel, isOurs := ctx.Value(callKey{}).(context.CancelFunc)
		if isOurs {
			cancel()
		}
		switch {
		case e.Error == nil:
		case isOurs && status.Code(e.Error) == codes.DeadlineExceeded:
			s.door.Fault(gateway.Slow, "a call exceeded its time limit and was ended", "within", s.door.callTimeout)
		case !isOther:
			s.door.recordFailure(e.Error)
		}
	}
}

// recordFailure counts and logs a call that was answered with an error. It ignores calls that the peer
// canceled or that exceeded the peer's deadline.
func (d *Door) recordFailure(err error) {
	if code := status.Code(err); code == codes.Canceled || code == codes.DeadlineExceeded {
		return
	}
	d.Fault(gateway.Unreadable, "a call failed: Envoy's failure_mode_deny decides whether the request passes", "err", err)
}

// TagConn implements [stats.Handler].
func (callStats) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (callStats) HandleConn(context.Context, stats.ConnStats) {}
