package hpgrpc_test

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	hpgrpc "github.com/hotparam/hotparam/adapters/grpc"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	unaryRoute  = "grpc.testing.TestService/UnaryCall"
	serverRoute = "grpc.testing.TestService/StreamingOutputCall"
	clientRoute = "grpc.testing.TestService/StreamingInputCall"
	bidiRoute   = "grpc.testing.TestService/FullDuplexCall"
)

// service is a test's service. A nil handler echoes its request.
type service struct {
	pb.UnimplementedTestServiceServer
	unary  func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error)
	output func(*pb.StreamingOutputCallRequest, grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error
	input  func(grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error
	duplex func(grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error
}

func (s *service) UnaryCall(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if s.unary != nil {
		return s.unary(ctx, req)
	}
	return &pb.SimpleResponse{Username: req.GetResponseStatus().GetMessage()}, nil
}

func (s *service) StreamingOutputCall(req *pb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	return s.output(req, stream)
}

func (s *service) StreamingInputCall(stream grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	return s.input(stream)
}

func (s *service) FullDuplexCall(stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	return s.duplex(stream)
}

// fixture is a guarded server and its client.
type fixture struct {
	pb.TestServiceClient
	t     *testing.T
	guard *middleware.Guard
}

type setup struct {
	rules   string
	service *service
	guard   []middleware.Option
	options []hpgrpc.Option
	before  []grpc.UnaryServerInterceptor // interceptors in front of the guard
	dial    []grpc.DialOption
}

func start(t *testing.T, s setup) *fixture {
	t.Helper()
	f := &fixture{t: t, guard: middlewaretest.NewGuard(t, s.rules, s.guard...)}
	server := grpc.NewServer(
		grpc.WaitForHandlers(true),
		grpc.ChainUnaryInterceptor(append(s.before, hpgrpc.UnaryServerInterceptor(f.guard, s.options...))...),
		grpc.ChainStreamInterceptor(hpgrpc.StreamServerInterceptor(f.guard, s.options...)),
	)
	if s.service == nil {
		s.service = new(service)
	}
	pb.RegisterTestServiceServer(server, s.service)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(), append(s.dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	f.TestServiceClient = pb.NewTestServiceClient(conn)
	return f
}

// context returns a context that ends with the test, or after a time that no call takes.
func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	f.t.Cleanup(cancel)
	return ctx
}

// call makes a unary call with this field and returns its code.
func (f *fixture) call(ctx context.Context, field string, opts ...grpc.CallOption) codes.Code {
	_, err := f.UnaryCall(ctx, &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: field}}, opts...)
	return status.Code(err)
}

// want makes unary calls with this field and compares their codes.
func (f *fixture) want(ctx context.Context, field string, want ...codes.Code) {
	f.t.Helper()
	for i, code := range want {
		if got := f.call(ctx, field); got != code {
			f.t.Errorf("call %d of %q: %v, want %v", i, field, got, code)
		}
	}
}

// await waits until a condition holds.
func (f *fixture) await(what string, condition func() bool) {
	f.t.Helper()
	for end := time.Now().Add(20 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not in time", what)
		}
	}
}
