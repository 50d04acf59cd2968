package hpgrpc_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	hpgrpc "github.com/hotparam/hotparam/adapters/grpc"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

type (
	outputRequest = pb.StreamingOutputCallRequest
	outputReply   = pb.StreamingOutputCallResponse
	inputRequest  = pb.StreamingInputCallRequest
	inputReply    = pb.StreamingInputCallResponse
)

func reply(size int) *outputReply {
	return &outputReply{Payload: &pb.Payload{Body: make([]byte, size)}}
}

// echoes returns handlers of the three kinds of streams. They treat errors as most handlers do.
func echoes() *service {
	return &service{
		output: func(req *outputRequest, stream grpc.ServerStreamingServer[outputReply]) error {
			for _, p := range req.GetResponseParameters() {
				middleware.AddCost(stream.Context(), int64(p.GetSize()))
				if err := stream.Send(reply(int(p.GetSize()))); err != nil {
					return err
				}
			}
			return nil
		},
		input: func(stream grpc.ClientStreamingServer[inputRequest, inputReply]) error {
			ctx := stream.Context() // before the first message
			n := 0
			for {
				req, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					return stream.SendAndClose(&inputReply{AggregatedPayloadSize: int32(n)})
				}
				if err != nil {
					return err
				}
				middleware.AddCost(ctx, int64(len(req.GetPayload().GetBody())))
				n += len(req.GetPayload().GetBody())
			}
		},
		duplex: func(stream grpc.BidiStreamingServer[outputRequest, outputReply]) error {
			for {
				req, err := stream.Recv()
				if err != nil {
					return nil //nolint:nilerr // whatever it is
				}
				if err := stream.Send(reply(len(req.GetPayload().GetBody()))); err != nil {
					return err
				}
			}
		},
	}
}

// output makes a call of a server stream, and returns the number of messages received.
func (f *fixture) output(req *outputRequest) (int, error) {
	f.t.Helper()
	stream, err := f.StreamingOutputCall(f.context(), req)
	if err != nil {
		f.t.Fatal(err)
	}
	for n := 0; ; n++ {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// input makes a call of a client stream with these messages.
func (f *fixture) input(messages ...string) (*inputReply, error) {
	f.t.Helper()
	stream, err := f.StreamingInputCall(f.context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range messages {
		if err := stream.Send(&inputRequest{Payload: &pb.Payload{Body: []byte(m)}}); err != nil {
			break // the status is that of CloseAndRecv
		}
	}
	return stream.CloseAndRecv()
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// A server stream counts as one request, with its single message.
func TestServerStream(t *testing.T) {
	f := start(t, setup{
		rules:   `{id: r, match: {route: ` + serverRoute + `}, by: ["rpc:response_parameters.size"], limit: {rate: 1/1h, burst: 1}}`,
		service: echoes(),
		guard:   []middleware.Option{middleware.WithHeaders()},
	})
	sizes := func(sizes ...int32) *outputRequest {
		req := new(outputRequest)
		for _, n := range sizes {
			req.ResponseParameters = append(req.ResponseParameters, &pb.ResponseParameters{Size: n})
		}
		return req
	}
	if n, err := f.output(sizes(10, 20)); n != 2 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
	n, err := f.output(sizes(10, 20))
	wantCode(t, "the same message", err, codes.ResourceExhausted)
	if n != 0 {
		t.Errorf("%d messages", n)
	}
	_, err = f.output(sizes(30, 20))
	wantCode(t, "one value of it", err, codes.ResourceExhausted)
	if _, err = f.output(sizes(40)); err != nil {
		t.Errorf("another: %v", err)
	}
	if n, err := f.output(sizes()); n != 0 || err != nil {
		t.Errorf("without the field: %d messages, %v", n, err)
	}
}

// A client stream is decided on its first message, or at its end if it has none.
func TestClientStream(t *testing.T) {
	f := start(t, setup{
		rules: `{id: r, match: {route: ` + clientRoute + `}, by: ["rpc:payload.body"], limit: {rate: 1/1h, burst: 1}}
			{id: all, match: {route: ` + clientRoute + `}, limit: {rate: 1/1h, burst: 3}}`,
		service: echoes(),
	})
	if res, err := f.input("a", "bc"); err != nil || res.GetAggregatedPayloadSize() != 3 {
		t.Errorf("%v %v", res, err)
	}
	_, err := f.input("a", "x")
	wantCode(t, "the same first message", err, codes.ResourceExhausted)
	_, err = f.input("bc", "a")
	wantCode(t, "another first message", err, codes.OK)
	_, err = f.input()
	wantCode(t, "no message", err, codes.OK)
	_, err = f.input()
	wantCode(t, "no message, beyond the limit of all", err, codes.ResourceExhausted)
}

// A stream whose rules need no message is decided when it is opened, and holds its permit until
// its handler has returned.
func TestOpenedStream(t *testing.T) {
	f := start(t, setup{rules: `{id: r, match: {route: ` + bidiRoute + `, query: {"header:x-plan": free}}, limit: {concurrency: 1}}`, service: echoes()})
	free := metadata.AppendToOutgoingContext(f.context(), "x-plan", "free")
	first, err := f.FullDuplexCall(free)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Send(&outputRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Recv(); err != nil { // so it is there
		t.Fatal(err)
	}
	refused := func() bool {
		stream, err := f.FullDuplexCall(free)
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		_, err = stream.Recv()
		if code := status.Code(err); code != codes.Unavailable && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return status.Code(err) == codes.Unavailable
	}
	if !refused() {
		t.Error("beside the first")
	}
	other, err := f.FullDuplexCall(f.context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // many messages are one request
		if err := other.Send(&outputRequest{Payload: &pb.Payload{Body: []byte("abc")}}); err != nil {
			t.Fatal(err)
		}
		if res, err := other.Recv(); err != nil || len(res.GetPayload().GetBody()) != 3 {
			t.Fatalf("%v %v", res, err)
		}
	}
	_ = other.CloseSend()
	_ = first.CloseSend()
	if _, err := first.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the first: %v", err)
	}
	f.await("the permit", func() bool { return !refused() })
}

// A refusal at the first message becomes the call's status, whatever its handler returns, and ends
// the handler's context.
func TestRefusedStream(t *testing.T) {
	ended := make(chan error, 1)
	s := echoes()
	echo := s.duplex
	s.duplex = func(stream grpc.BidiStreamingServer[outputRequest, outputReply]) error {
		ctx := stream.Context()
		err := echo(stream)
		ended <- ctx.Err()
		return err
	}
	f := start(t, setup{
		rules:   `{id: r, match: {route: ` + bidiRoute + `}, by: ["rpc:response_status.message"], limit: {rate: 1/1h, burst: 1}}`,
		service: s, guard: []middleware.Option{middleware.WithHeaders()},
	})
	req := &outputRequest{ResponseStatus: &pb.EchoStatus{Message: "ann"}}
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		stream, err := f.FullDuplexCall(f.context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		wantCode(t, "stream", err, want)
		_ = stream.CloseSend()
		header, _ := stream.Header()
		if want == codes.OK {
			if got := header.Get("ratelimit"); len(got) != 1 || !strings.HasPrefix(got[0], `"r";r=0`) {
				t.Errorf("RateLimit %q", got)
			}
			if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("end: %v", err)
			}
		} else if got := stream.Trailer(); len(got.Get("retry-after")) != 1 || !slices.Equal(got.Get("grpc-retry-pushback-ms"), []string{"-1"}) {
			t.Errorf("trailers %v", got)
		}
		if err := <-ended; (err != nil) != (want != codes.OK) {
			t.Errorf("%v: the handler's context: %v", want, err)
		}
	}
}

// A stream without any message is a request, too, if its handler sends no reply.
func TestEmptyStream(t *testing.T) {
	f := start(t, setup{
		rules: `{id: r, match: {route: ` + bidiRoute + `}, by: ["rpc:response_status.message"], limit: {rate: 1/1h, burst: 1}}
			{id: all, match: {route: ` + bidiRoute + `}, limit: {rate: 1/1h, burst: 1}}`,
		service: echoes(),
	})
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		stream, err := f.FullDuplexCall(f.context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		if _, err = stream.Recv(); errors.Is(err, io.EOF) {
			err = nil
		}
		wantCode(t, "stream", err, want)
	}
}

// If a handler sends first, the guard decides before the first message has arrived.
func TestHandlerSendsFirst(t *testing.T) {
	s := &service{duplex: func(stream grpc.BidiStreamingServer[outputRequest, outputReply]) error {
		if err := stream.SendHeader(metadata.Pairs("x-own", "1")); err != nil {
			return err
		}
		return stream.Send(reply(1))
	}}
	f := start(t, setup{
		rules: `{id: r, match: {route: ` + bidiRoute + `}, by: ["rpc:response_status.message"], limit: {rate: 1/1h, burst: 1}}
			{id: all, match: {route: ` + bidiRoute + `}, limit: {rate: 1/1h, burst: 1}}`,
		service: s, guard: []middleware.Option{middleware.WithHeaders()},
	})
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		stream, err := f.FullDuplexCall(f.context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		wantCode(t, "stream", err, want)
		header, _ := stream.Header()
		if own, limit := header.Get("x-own"), header.Get("ratelimit"); want == codes.OK && (len(own) != 1 || len(limit) != 1) {
			t.Errorf("headers %v", header)
		}
		_, _ = stream.Recv() // its end
	}
}

func TestServedStream(t *testing.T) {
	rule := func(route string) string {
		return `{id: r, match: {route: ` + route + `}, limit: {rate: 1/1h, burst: 1, on_limit: serve, serve: {status: 200, body: x}}}`
	}
	f := start(t, setup{rules: rule(serverRoute) + "\n" + strings.Replace(rule(clientRoute), "id: r", "id: c", 1), service: echoes(), guard: []middleware.Option{middleware.WithHeaders()}, options: []hpgrpc.Option{
		hpgrpc.WithServed(func(_ context.Context, method string, request any, _ rules.Decision) (any, error) {
			if request != nil {
				t.Errorf("a stream that is refused when it is opened has a message: %v", request)
			}
			if method == "/"+serverRoute {
				return reply(7), nil
			}
			return &inputReply{AggregatedPayloadSize: -1}, nil
		}),
	}})
	req := &outputRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 1}, {Size: 2}}}
	if n, err := f.output(req); n != 2 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
	if n, err := f.output(req); n != 1 || err != nil {
		t.Errorf("served: %d messages, %v", n, err)
	}
	_, err := f.input("a")
	wantCode(t, "within", err, codes.OK)
	if res, err := f.input("a"); err != nil || res.GetAggregatedPayloadSize() != -1 {
		t.Errorf("served: %v %v", res, err)
	}
	stream, err := f.StreamingOutputCall(f.context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if header, err := stream.Header(); err != nil || len(header.Get("ratelimit")) != 1 {
		t.Errorf("headers %v, %v", header, err)
	}
	if _, err = stream.Recv(); err != nil {
		t.Error(err)
	}
	if _, err = stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// A stream's cost is the cost of all its messages, plus the units that its handler adds through a
// context obtained before the guard decided.
func TestStreamCosts(t *testing.T) {
	for rule, call := range map[string]func(*fixture) error{
		`{id: r, match: {route: ` + serverRoute + `}, count: bytes, limit: {rate: 1/1h, burst: 1500}}`: func(f *fixture) error {
			_, err := f.output(&outputRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 500}, {Size: 500}}})
			return err
		},
		`{id: r, match: {route: ` + serverRoute + `}, count: units, limit: {rate: 1/1h, burst: 7}}`: func(f *fixture) error {
			_, err := f.output(&outputRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 2}, {Size: 2}}})
			return err
		},
		`{id: r, match: {route: ` + clientRoute + `}, by: ["rpc:payload.body"], count: units, limit: {rate: 1/1h, burst: 7}}`: func(f *fixture) error {
			_, err := f.input("ab", "cd")
			return err
		},
	} {
		f := start(t, setup{rules: rule, service: echoes()})
		for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
			if err := call(f); status.Code(err) != want {
				t.Errorf("%s: call %d: %v, want %v", rule, i, err, want)
			}
		}
	}
}

func TestStreamPanics(t *testing.T) {
	f := start(t, setup{rules: `{id: one, match: {route: shop/Find}, limit: {concurrency: 1}}`})
	intercept := hpgrpc.StreamServerInterceptor(f.guard)
	for range 3 {
		func() {
			defer func() {
				if recover() != "the handler's own" {
					t.Error("the panic was lost, or the permit was")
				}
			}()
			_ = intercept(nil, noStream{t.Context()}, &grpc.StreamServerInfo{FullMethod: "/shop/Find"}, func(any, grpc.ServerStream) error { panic("the handler's own") })
		}()
	}
}

// noStream is a stream with a context and no other behavior.
type noStream struct{ ctx context.Context }

func (s noStream) Context() context.Context     { return s.ctx }
func (s noStream) SetHeader(metadata.MD) error  { return nil }
func (s noStream) SendHeader(metadata.MD) error { return nil }
func (s noStream) SetTrailer(metadata.MD)       {}
func (s noStream) SendMsg(any) error            { return nil }
func (s noStream) RecvMsg(any) error            { return io.EOF }
