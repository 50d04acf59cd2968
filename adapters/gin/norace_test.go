//go:build !race

package hpgin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	hpgin "github.com/hotparam/hotparam/adapters/gin"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// A guarded request without hot keys allocates nothing.
func TestAllocations(t *testing.T) {
	guard := middlewaretest.NewGuard(t, `{id: all, match: {route: "*"}, by: all, hot: 100000/s}`)
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(hpgin.Middleware(guard))
	r.GET("/u/:id", func(*gin.Context) {})
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/u/7?q=phone", http.NoBody)
	if n := testing.AllocsPerRun(1000, func() { r.ServeHTTP(w, req) }); n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}
