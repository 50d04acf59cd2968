package rls

import (
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

// BenchmarkDoor measures a call, without gRPC.
func BenchmarkDoor(b *testing.B) {
	around := gatewaytest.New(b, gatewaytest.Rules(`{id: search, match: {route: "GET /search"}, by: [q], hot: 1000000/s, limit: {rate: 1/s}}`), gateway.Config{})
	door, err := New(gateway.DoorConfig{Decider: around.Decider, Tickets: around.Tickets})
	if err != nil {
		b.Fatal(err)
	}
	call := &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/search?q=phone"))}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := door.ShouldRateLimit(b.Context(), call); err != nil || r.GetOverallCode() == over {
			b.Fatal(r, err)
		}
	}
}
