package hpgrpc_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

const (
	answered = `{id: calls, match: {route: ` + unaryRoute + `}, by: ["rpc:response_status.message"], hot: 1000000/s, limit: {rate: 1/1h, burst: %d}, on_hot: {cache: 1m, vary: ["header:x-language", "header:x-key-bin"]}}`
	hotCall  = "calls " + unaryRoute + "?rpc:response_status.message=hot"
)

// startHot starts a server whose rule admits burst calls with the field "hot".
func startHot(t *testing.T, burst int, unary func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error)) (*fixture, *atomic.Int64) {
	t.Helper()
	calls := new(atomic.Int64)
	f := start(t, setup{rules: fmt.Sprintf(answered, burst), service: &service{unary: func(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		calls.Add(1)
		return unary(ctx, req)
	}}})
	middlewaretest.Heat(t, f.guard, hotCall)
	return f, calls
}

// ask calls with a size that is no part of the key, and metadata. It returns the answer and its
// Cache-Status.
func (f *fixture) ask(size int32, pairs ...string) (answer, how string, code codes.Code) {
	f.t.Helper()
	var header metadata.MD
	ctx := metadata.AppendToOutgoingContext(f.context(), pairs...)
	res, err := f.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: size, ResponseStatus: &pb.EchoStatus{Message: "hot"}}, grpc.Header(&header))
	return res.GetUsername(), strings.Join(header.Get("cache-status"), ","), status.Code(err)
}

// Calls with the same message are answered together, from what is in the key alone.
func TestTogether(t *testing.T) {
	f, calls := startHot(t, 5, func(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		middleware.AddCost(ctx, 1)
		md, _ := metadata.FromIncomingContext(ctx)
		_, hasPeer := peer.FromContext(ctx)
		method, _ := grpc.Method(ctx)
		delete(md, ":authority")
		return &pb.SimpleResponse{Username: fmt.Sprint(req.GetResponseSize(), " ", method, " ", hasPeer, " ", md)}, nil
	})
	for range 2 {
		for _, size := range []int32{1, 2} {
			for _, language := range []string{"de", "fr"} {
				got, how, code := f.ask(size, "x-user", fmt.Sprint(size), "x-language", language, "x-key-bin", "\x00\xff")
				want := fmt.Sprint(size, " /", unaryRoute, " false ", metadata.MD{"x-key-bin": {"\x00\xff"}, "x-language": {language}})
				if got != want || code != codes.OK || !strings.HasPrefix(how, "hotparam; ") {
					t.Errorf("%q, %q, %v; want %q", got, how, code, want)
				}
			}
		}
	}
	if n := calls.Load(); n != 4 {
		t.Errorf("the handler was called %d times for two messages in two languages", n)
	}
	if _, _, code := f.ask(3); code != codes.OK {
		t.Errorf("the fifth: %v", code)
	}
	if _, _, code := f.ask(4); code != codes.ResourceExhausted {
		t.Errorf("beyond the limit: %v", code)
	}
	if got, how, code := f.ask(3); code != codes.OK || how != "hotparam; hit" {
		t.Errorf("from memory: %q, %q, %v", got, how, code)
	}
}

// Calls that are not for sharing, or whose answers are not, are answered as without on_hot.
func TestCallsAlone(t *testing.T) {
	f, _ := startHot(t, 100, func(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		user := strings.Join(md.Get("x-user"), "")
		switch req.GetResponseSize() {
		case 1:
			_ = grpc.SetHeader(ctx, metadata.Pairs("x-session", user))
		case 2:
			_ = grpc.SetTrailer(ctx, metadata.Pairs("x-session", user))
		case 3:
			return nil, status.Error(codes.NotFound, user)
		case 4:
			return nil, status.Error(codes.Unavailable, user)
		case 5:
			if user == "" {
				panic("the handler's own")
			}
		}
		return &pb.SimpleResponse{Username: user}, nil
	})
	for _, user := range []string{"ann", "bob"} {
		for size, want := range []struct {
			how  string
			code codes.Code
		}{{"fwd=request; detail=authorization", 0}, {"detail=withheld", 0}, {"detail=withheld", 0}, {"", codes.NotFound}, {"", codes.Unavailable}, {"detail=panic", 0}} {
			pairs := []string{"x-user", user}
			if size == 0 {
				pairs = append(pairs, "authorization", "Bearer "+user)
			}
			got, how, code := f.ask(int32(size), pairs...)
			if code != want.code || code == codes.OK && got != user || !strings.HasSuffix(how, want.how) {
				t.Errorf("%d of %s: %q, %q, %v", size, user, got, how, code)
			}
		}
	}
}

// A rule for all methods does not apply to calls: their methods may change something.
func TestNotOptedIn(t *testing.T) {
	calls := 0
	f := start(t, setup{
		rules: `{id: calls, match: {route: "*"}, by: ["rpc:response_status.message"], hot: 1000000/s, limit: {rate: 1/1h, burst: 2}, on_hot: {cache: 1m}}`,
		service: &service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			calls++
			return new(pb.SimpleResponse), nil
		}},
	})
	middlewaretest.Heat(t, f.guard, hotCall)
	f.want(f.context(), "hot", codes.OK, codes.OK, codes.ResourceExhausted)
	if calls != 2 {
		t.Errorf("the handler was called %d times", calls)
	}
}
