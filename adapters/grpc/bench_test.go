package hpgrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	hpgrpc "github.com/hotparam/hotparam/adapters/grpc"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// BenchmarkUnary measures the cost of the interceptor for a call without a limit. Apart from
// metadata it allocates nothing.
func BenchmarkUnary(b *testing.B) {
	for _, c := range []struct{ name, rules string }{
		{"no rule", `{id: r, match: {route: other}, limit: 1/s}`},
		{"rpc", `{id: r, match: {route: ` + unaryRoute + `}, by: ["rpc:response_status.message"], hot: 1000000/s}`},
		{"header", `{id: r, match: {route: ` + unaryRoute + `}, by: ["header:x-plan"], hot: 1000000/s}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			intercept := hpgrpc.UnaryServerInterceptor(middlewaretest.NewGuard(b, c.rules))
			ctx := metadata.NewIncomingContext(b.Context(), metadata.Pairs("x-plan", "free", "user-agent", "grpc-go", "content-type", "application/grpc"))
			req, res := &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "ann"}}, new(pb.SimpleResponse)
			info := &grpc.UnaryServerInfo{FullMethod: "/" + unaryRoute}
			handler := func(context.Context, any) (any, error) { return res, nil }
			b.ReportAllocs()
			for b.Loop() {
				if _, err := intercept(ctx, req, info, handler); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
