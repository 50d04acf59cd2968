package rls

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// callKey is the key of a call's cancel function in its context.
type callKey struct{}

// tap is called for each new stream, by the goroutine of its connection. It refuses a call if
// there are too many, and bounds the time of one that has no such bound itself: a peer that
// sends a message byte by byte would hold it for ever.
func (d *Door) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	if info.FullMethodName != ratelimit.RateLimitService_ShouldRateLimit_FullMethodName {
		return ctx, nil // health and reflection have streams that stay open
	}
	if d.calls.Load() >= int64(d.config.MaxCalls) {
		d.stats.Busy.Add(1)
		d.complain.add(complainBusy, "refused a call: there are too many at a time", "calls", d.config.MaxCalls)
		return ctx, status.Error(codes.ResourceExhausted, "too many calls at a time")
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d.config.CallTimeout {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.config.CallTimeout)
	return context.WithValue(ctx, callKey{}, cancel), nil
}

// callStats counts the calls that there are at a time, and those that failed before they came
// to the door. It implements [stats.Handler].
type callStats struct{ door *Door }

// TagRPC implements [stats.Handler].
func (callStats) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if info.FullMethodName != ratelimit.RateLimitService_ShouldRateLimit_FullMethodName {
		return context.WithValue(ctx, otherMethod{}, true)
	}
	return ctx
}

// otherMethod marks the context of a call of another service.
type otherMethod struct{}

// HandleRPC implements [stats.Handler].
func (s callStats) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch e := event.(type) {
	case *stats.Begin:
		if !isOther(ctx) {
			s.door.calls.Add(1)
		}
	case *stats.End:
		if isOther(ctx) {
			return
		}
		s.door.calls.Add(-1)
		if cancel, ok := ctx.Value(callKey{}).(context.CancelFunc); ok {
			cancel()
		}
		if e.Error != nil {
			s.door.failed(e.Error)
		}
	}
}

func isOther(ctx context.Context) bool { return ctx.Value(otherMethod{}) != nil }

// failed counts a call that was answered with an error. One that its peer has given up is none
// of the peer's faults.
func (d *Door) failed(err error) {
	if code := status.Code(err); code == codes.Canceled || code == codes.DeadlineExceeded {
		return
	}
	d.stats.Failed.Add(1)
	d.complain.add(complainFailed, "a call failed, and Envoy lets its request pass or not by failure_mode_deny", "err", err)
}

// TagConn implements [stats.Handler].
func (callStats) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (callStats) HandleConn(context.Context, stats.ConnStats) {}
