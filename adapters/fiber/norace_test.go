//go:build !race

package hpfiber_test

import (
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	hpfiber "github.com/hotparam/hotparam/adapters/fiber"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// A guarded request without hot keys makes few allocations: itself, copies of its path and query,
// and a net/http request.
func TestAllocations(t *testing.T) {
	guard := middlewaretest.NewGuard(t, `{id: all, match: {route: "*"}, by: all, hot: 100000/s}`)
	app := fiber.New()
	app.Use(hpfiber.Middleware(guard))
	app.Get("/u/:id", func(fiber.Ctx) error { return nil })
	serve := app.Handler()
	var in fasthttp.RequestCtx
	in.Request.SetRequestURI("/u/7?q=phone")
	if n := testing.AllocsPerRun(1000, func() { serve(&in) }); n > 4 {
		t.Errorf("%.1f allocations", n)
	}
}
