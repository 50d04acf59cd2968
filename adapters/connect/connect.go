// Package hpconnect guards the methods of a connect server by hotparam, whether they are
// called by Connect, gRPC or gRPC-Web.
//
//	hp, err := hotparam.Open(ctx, "hotparam.yaml")
//	…
//	mux.Handle(shopconnect.NewSearchHandler(searches, connect.WithInterceptors(hpconnect.NewInterceptor(hp))))
//
// The route in rules is the full method, shop.Search/Find. Rules name headers as header: and
// cookie:, the client's address as addr:, and a field of the request's message as rpc:. Values
// that earlier interceptors have put into the context are ctx:.
//
// Do not put handlers with the interceptor behind hp.Handler as well: each call would count as
// two requests. hp.Handler sees the paths and headers of calls, but not their messages.
//
// # Streams
//
// A stream is one request. The guard decides on it when it is opened. If a rule for its method
// names fields of the message, it decides at the first message that is received or sent. The
// stream holds its permits until the handler returns.
//
// # Refusals
//
// A refused call gets an error, with an ErrorInfo that has the reason of the decision:
//
//   - resource_exhausted with RetryInfo and QuotaFailure: the client exceeded the limit;
//   - unavailable with RetryInfo: the limit of concurrent requests is reached, or the backend
//     that decides is unavailable;
//   - permission_denied: no rule matches, or a rule blocks a value;
//   - canceled or deadline_exceeded: the call ended while it waited.
//
// The QuotaFailure has the rule's id and no value. Retry-After and RateLimit are metadata of
// the error: headers of a unary call by Connect, trailers of others. For a call that passes,
// RateLimit is a header.
package hpconnect

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"

	"connectrpc.com/connect"

	"github.com/hotparam/hotparam/middleware/rpc"
	"github.com/hotparam/hotparam/rules"
)

// Option configures an interceptor.
type Option func(*interceptor)

// WithServed makes f answer the calls that a rule with on_limit: serve refuses, by a response or
// an error. request is the message that the guard decided by, or nil for a stream that is
// refused when it is opened. The response has the message type of the method, and is the only
// response of a stream. If f returns neither, or there is no f, the call gets an error. The
// error's message is the body that the rule serves. Its code is the one in google.rpc.Code for
// the rule's HTTP status, or resource_exhausted.
func WithServed(f func(ctx context.Context, method string, request any, d rules.Decision) (connect.AnyResponse, error)) Option {
	return func(i *interceptor) { i.served = f }
}

type interceptor struct {
	adapter *rpc.Adapter
	served  func(ctx context.Context, method string, request any, d rules.Decision) (connect.AnyResponse, error)
}

// NewInterceptor returns an interceptor that lets hp, a *hotparam.Hotparam or a
// *middleware.Guard, decide on each call of the handlers that have it. It does nothing in
// clients.
func NewInterceptor(hp rpc.Guard, opts ...Option) connect.Interceptor {
	i := &interceptor{adapter: rpc.New(hp, request, nil)}
	for _, opt := range opts {
		opt(i)
	}
	return i
}

// WrapUnary implements [connect.Interceptor].
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		c := i.adapter.Begin(ctx, req.Spec().Procedure, req, req.Any())
		defer c.End()
		if c.Refusal != nil {
			res, err := i.answer(ctx, req.Spec().Procedure, c.Refusal)
			if err == nil { // otherwise errorOf has put it into the error
				setHeader(ctx, c.Refusal.Header)
			}
			return res, err
		}
		setHeader(ctx, c.Header)
		res, err := next(c.Context, req)
		if err == nil {
			c.Sent(res.Any())
		}
		return res, err
	}
}

// setHeader sets metadata of a unary call, whether its handler fails or not. It does not change the
// response or the error, since a handler may return the same value for several calls.
func setHeader(ctx context.Context, header http.Header) {
	if header == nil {
		return
	}
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		maps.Copy(info.ResponseHeader(), header)
	}
}

// WrapStreamingClient implements [connect.Interceptor].
func (i *interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements [connect.Interceptor].
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		s := i.adapter.Open(ctx, conn.Spec().Procedure, conn)
		defer s.End()
		guarded := &handlerConn{StreamingHandlerConn: conn, stream: s}
		var err error
		if s.Refusal() == nil {
			err = next(s.Context(), guarded)
		}
		r := s.Refusal() // of the opening, or of the first message, during next
		if r == nil {
			guarded.setHeader() // not set yet if no message was sent
			return err
		}
		res, err := i.answer(ctx, conn.Spec().Procedure, r)
		if err != nil {
			return err
		}
		maps.Copy(conn.ResponseHeader(), r.Header)
		maps.Copy(conn.ResponseHeader(), res.Header())
		maps.Copy(conn.ResponseTrailer(), res.Trailer())
		return conn.Send(res.Any())
	}
}

// answer returns the response or the error for a refused call.
func (i *interceptor) answer(ctx context.Context, method string, r *rpc.Refusal) (connect.AnyResponse, error) {
	if i.served != nil && r.Decision.Reason == rules.ReasonServed && ctx.Err() == nil {
		res, err := i.served(ctx, method, r.Request, r.Decision)
		if err != nil {
			return nil, err
		}
		if res != nil {
			return res, nil
		}
	}
	return nil, errorOf(r)
}

// handlerConn makes the guard decide at the first message, unless it has decided already.
type handlerConn struct {
	connect.StreamingHandlerConn
	stream *rpc.Stream
}

func (c *handlerConn) Receive(message any) error {
	err := c.StreamingHandlerConn.Receive(message)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF): // no message
		message = nil
	default:
		return err
	}
	if r := c.stream.Decide(message); r != nil {
		return errorOf(r)
	}
	return err
}

func (c *handlerConn) Send(message any) error {
	if r := c.stream.Decide(nil); r != nil { // at the first message sent, if none was received before
		return errorOf(r)
	}
	c.setHeader()
	err := c.StreamingHandlerConn.Send(message)
	if err == nil {
		c.stream.Sent(message)
	}
	return err
}

// setHeader sets the metadata of a call that passes, before anything is sent.
func (c *handlerConn) setHeader() {
	if h := c.stream.TakeHeader(); h != nil {
		maps.Copy(c.ResponseHeader(), h)
	}
}
