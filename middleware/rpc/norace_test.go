//go:build !race

package rpc

import (
	"testing"

	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// Under the race detector the pool drops questions at random.
func TestAllocatesNothing(t *testing.T) {
	a := New(middlewaretest.NewGuard(t, `{id: r, match: {route: shop.Search/Find}, by: ["rpc:value"], hot: 1000000/s, limit: 1000000/s}`), noRequest, nil)
	ctx, message := t.Context(), text("phone")
	if n := testing.AllocsPerRun(1000, func() {
		c := a.Begin(ctx, "/shop.Search/Find", nil, message)
		c.Sent(message)
		c.End()
	}); n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}
