package hpconnect_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	hpconnect "github.com/hotparam/hotparam/adapters/connect"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// BenchmarkUnary measures the cost of the interceptor for a call without a limit.
func BenchmarkUnary(b *testing.B) {
	for _, c := range []struct{ name, rules string }{
		{"no rule", `{id: r, match: {route: other}, limit: 1/s}`},
		{"rpc", `{id: r, match: {route: shop.Search/Find}, by: ["rpc:value"], hot: 1000000/s}`},
		{"header", `{id: r, match: {route: shop.Search/Find}, by: ["header:x-plan"], hot: 1000000/s}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			res := connect.NewResponse(new(text))
			next := hpconnect.NewInterceptor(middlewaretest.NewGuard(b, c.rules)).WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
				return res, nil
			})
			// A request's Spec and Peer can only be set by a server.
			req := served{AnyRequest: connect.NewRequest(wrapperspb.String("phone"))}
			req.Header().Set("X-Plan", "free")
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := next(ctx, &req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type served struct{ connect.AnyRequest }

func (*served) Spec() connect.Spec { return connect.Spec{Procedure: unary} }
func (*served) Peer() connect.Peer { return connect.Peer{Addr: "192.0.2.7:80"} }
