//go:build !race

package hpecho_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	hpecho "github.com/hotparam/hotparam/adapters/echo"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// A guarded request without hot keys allocates only RouteInfo's copy and the value that next
// returns.
func TestAllocations(t *testing.T) {
	guard := middlewaretest.NewGuard(t, `{id: all, match: {route: "*"}, by: all, hot: 100000/s}`)
	r := echo.New()
	r.Use(hpecho.Middleware(guard))
	r.GET("/u/:id", func(*echo.Context) error { return nil })
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/u/7?q=phone", http.NoBody)
	if n := testing.AllocsPerRun(1000, func() { r.ServeHTTP(w, req) }); n > 2 {
		t.Errorf("%.1f allocations", n)
	}
}
