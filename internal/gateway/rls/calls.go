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
)

// callKey is the key of a call's cancel function in its context.
type callKey struct{}

// Methods that are not calls of the rate limit service.
const (
	ofHealth     = iota // a question of health, which is answered at once
	ofStream            // a stream of health or reflection, which stays open
	otherMethods        // how many kinds there are
)

// maxOthers bounds them at a time. They do not take the place of calls, nor streams that of
// questions of health.
var maxOthers = [otherMethods]int64{ofHealth: 1024, ofStream: 128}

// kindOf returns the kind of a method, or isCall.
func kindOf(method string) (kind int, isCall bool) {
	switch method {
	case ratelimit.RateLimitService_ShouldRateLimit_FullMethodName:
		return 0, true
	case healthpb.Health_Check_FullMethodName:
		return ofHealth, false
	}
	return ofStream, false
}

// tap is called for each new stream, by the goroutine of its connection. It refuses a call if
// there are too many, and bounds the time of one that has no such bound itself: a peer that
// sends a message byte by byte would hold it for ever.
func (d *Door) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	kind, isCall := kindOf(info.FullMethodName)
	now, most := &d.calls, int64(d.config.MaxCalls)
	if !isCall {
		now, most = &d.others[kind], maxOthers[kind]
	}
	if now.Load() >= most {
		d.stats.Busy.Add(1)
		d.complain.add(complainBusy, "refused a call: there are too many at a time", "method", info.FullMethodName, "calls", most)
		return ctx, status.Error(codes.ResourceExhausted, "too many calls at a time")
	}
	if !isCall && kind == ofStream {
		return ctx, nil
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
	if kind, isCall := kindOf(info.FullMethodName); !isCall {
		return context.WithValue(ctx, otherMethod{}, kind)
	}
	return ctx
}

// otherMethod is the key of the kind of a call of another service in its context.
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
			s.door.stats.Slow.Add(1)
			s.door.complain.add(complainSlow, "a call did not come in time, and was ended", "within", s.door.config.CallTimeout)
		case !isOther:
			s.door.failed(e.Error)
		}
	}
}

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
