// Package hpgrpc guards the methods of a gRPC server by hotparam.
//
//	hp, err := hotparam.Open(ctx, "hotparam.yaml")
//	…
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(hpgrpc.UnaryServerInterceptor(hp)),
//		grpc.ChainStreamInterceptor(hpgrpc.StreamServerInterceptor(hp)),
//	)
//
// The route in rules is the full method, shop.Search/Find. Rules name metadata as header: and
// cookie:, the peer's address as addr:, and a field of the request's message as rpc:. Values that
// earlier interceptors have put into the context are ctx:.
//
// Behind grpc.UnknownServiceHandler the client chooses the method. Rules there should name
// methods and not match "*", which would make a key of each name.
//
// # Streams
//
// A stream is one request. The guard decides on it when it is opened. If a rule for its method
// names fields of the message, it decides at the first message that is received or sent. The
// stream holds its permits until the handler returns.
//
// # Calls answered together
//
// With on_hot, unary calls of a hot key that have the same message, byte for byte, call the handler
// once. It applies to a rule whose route is the method, and not to streams or "*". So write it only
// for methods that change nothing. The handler's context has no peer, and no metadata beyond what
// on_hot names. If the handler sends headers or trailers, or returns an error, each call is answered
// alone.
//
// # Refusals
//
// A refused call gets a status, with an ErrorInfo that has the reason of the decision:
//
//   - RESOURCE_EXHAUSTED with RetryInfo and QuotaFailure: the client exceeded the limit;
//   - UNAVAILABLE with RetryInfo: the limit of concurrent requests is reached, or the backend
//     that decides is unavailable;
//   - PERMISSION_DENIED: no rule matches, or a rule blocks a value;
//   - CANCELLED or DEADLINE_EXCEEDED: the call ended while it waited.
//
// The QuotaFailure has the rule's id and no value. Retry-After and RateLimit are trailers of a
// refused or failed call, and headers of others, since no client retries a call that got
// headers. A client retries by its own policy, whose wait is replaced by the trailer
// grpc-retry-pushback-ms. That is the wait of RetryInfo, up to [MaxPushback]. If the wait is
// longer, or a retry cannot pass, the trailer makes the client not retry.
//
// grpc.go has the interceptors, request.go the call as rules see it, status.go the status of a
// refusal, and onhot.go the runs that answer several calls.
package hpgrpc

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/hotparam/hotparam/middleware/rpc"
	"github.com/hotparam/hotparam/rules"
)

// Option configures an interceptor.
type Option func(*guarded)

// WithServed makes f answer the calls that a rule with on_limit: serve refuses, by a message or
// an error. request is the message that the guard decided by, or nil for a stream that is
// refused when it is opened. The message is the only one of a stream. If f returns neither, or
// there is no f, the call gets a status. Its message is the body that the rule serves. Its code
// is the one in google.rpc.Code for the rule's HTTP status, or RESOURCE_EXHAUSTED.
func WithServed(f func(ctx context.Context, method string, request any, d rules.Decision) (any, error)) Option {
	return func(g *guarded) { g.served = f }
}

type guarded struct {
	adapter *rpc.Adapter
	served  func(ctx context.Context, method string, request any, d rules.Decision) (any, error)
}

func newGuarded(hp rpc.Guard, opts []Option) *guarded {
	g := &guarded{adapter: rpc.New(hp, request, runHandler)}
	for _, opt := range opts {
		opt(g)
	}
	return g
}

// UnaryServerInterceptor returns an interceptor that lets hp, a *hotparam.Hotparam or a
// *middleware.Guard, decide on each unary call.
func UnaryServerInterceptor(hp rpc.Guard, opts ...Option) grpc.UnaryServerInterceptor {
	return newGuarded(hp, opts).unary
}

// StreamServerInterceptor returns an interceptor that lets hp, a *hotparam.Hotparam or a
// *middleware.Guard, decide on each stream.
func StreamServerInterceptor(hp rpc.Guard, opts ...Option) grpc.StreamServerInterceptor {
	return newGuarded(hp, opts).stream
}

func (g *guarded) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c := g.adapter.BeginUnary(ctx, info.FullMethod, nil, req, handler)
	defer c.End()
	if c.Response != nil {
		_ = grpc.SetHeader(ctx, metadataOf(c.Header))
		return c.Response, nil
	}
	if r := c.Refusal; r != nil {
		res, err := g.answer(ctx, info.FullMethod, r)
		if err != nil {
			_ = grpc.SetTrailer(ctx, trailer(r))
		} else {
			_ = grpc.SetHeader(ctx, metadataOf(r.Header))
		}
		return res, err
	}
	res, err := handler(c.Context, req)
	if err == nil {
		c.Sent(res)
	}
	if c.Header != nil {
		if md := metadataOf(c.Header); err != nil || grpc.SetHeader(ctx, md) != nil {
			_ = grpc.SetTrailer(ctx, md)
		}
	}
	return res, err
}

func (g *guarded) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s := g.adapter.Open(ss.Context(), info.FullMethod, nil)
	defer s.End()
	var err error
	if s.Refusal() == nil {
		err = handler(srv, &serverStream{ServerStream: ss, stream: s})
	}
	r := s.Refusal()
	if r == nil {
		if h := s.TakeHeader(); h != nil { // no message was sent
			ss.SetTrailer(metadataOf(h))
		}
		return err
	}
	res, err := g.answer(ss.Context(), info.FullMethod, r)
	if err != nil {
		ss.SetTrailer(trailer(r))
		return err
	}
	_ = ss.SetHeader(metadataOf(r.Header))
	return ss.SendMsg(res)
}

// answer returns the message or the error for a refused call.
func (g *guarded) answer(ctx context.Context, method string, r *rpc.Refusal) (any, error) {
	if g.served != nil && r.Decision.Reason == rules.ReasonServed && ctx.Err() == nil {
		if res, err := g.served(ctx, method, r.Request, r.Decision); res != nil || err != nil {
			return res, err
		}
	}
	return nil, statusOf(r).Err()
}

// serverStream makes the guard decide at the first message, unless it has decided already.
type serverStream struct {
	grpc.ServerStream
	stream *rpc.Stream
}

func (w *serverStream) Context() context.Context { return w.stream.Context() }

func (w *serverStream) RecvMsg(m any) error {
	err := w.ServerStream.RecvMsg(m)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF): // no message
		m = nil
	default:
		return err
	}
	if r := w.stream.Decide(m); r != nil {
		return statusOf(r).Err()
	}
	return err
}

func (w *serverStream) SendMsg(m any) error {
	if r := w.stream.Decide(nil); r != nil {
		return statusOf(r).Err()
	}
	w.setHeader()
	err := w.ServerStream.SendMsg(m)
	if err == nil {
		w.stream.Sent(m)
	}
	return err
}

func (w *serverStream) SendHeader(md metadata.MD) error {
	if r := w.stream.Decide(nil); r != nil {
		return statusOf(r).Err()
	}
	w.setHeader()
	return w.ServerStream.SendHeader(md)
}

// setHeader sets the metadata of a call that passes, before anything is sent.
func (w *serverStream) setHeader() {
	if h := w.stream.TakeHeader(); h != nil {
		_ = w.ServerStream.SetHeader(metadataOf(h))
	}
}
