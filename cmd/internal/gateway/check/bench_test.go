package check

import (
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

// BenchmarkDoor measures a check over a kept connection, including the client's part of it.
func BenchmarkDoor(b *testing.B) {
	f := serve(b, gatewaytest.New(b, `  - {id: search, match: {route: "GET /search"}, by: [q], hot: 1000000/s, limit: {rate: 1/s}}`+"\n", gateway.Config{}), gateway.DoorConfig{})
	b.ReportAllocs()
	for b.Loop() {
		if r := f.check(`{"method": "GET", "uri": "/search?q=phone"}`); !r.Allowed {
			b.Fatal(r)
		}
	}
}
