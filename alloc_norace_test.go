//go:build !race

package hotparam

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A request that is not hot allocates nothing, from the handler on. (The race detector makes pools
// drop their contents.) The least of some measurements counts, since the guard's own goroutines
// allocate as well.
func TestColdRequestDoesNotAllocate(t *testing.T) {
	cold := strings.Replace(searchRule, "hot: 200/s", "hot: 1000000/s", 1)
	onHot := strings.Replace(cold, "limit:", "on_hot: {cache: 1s}, limit:", 1)
	for _, rule := range []string{cold, onHot, onHot + `
  - {id: all, match: {route: "*"}, by: all, hot: 1000000/s, on_hot: {cache: 1s}}`} {
		f := open(t, shop("redis://"+nowhere(t), nowhere(t), rule))
		handler := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := httptest.NewRequest(method, "/search?q=phone", http.NoBody)
			req.Pattern = "GET /search"
			w := httptest.NewRecorder()
			least := math.Inf(1)
			for range 5 {
				least = min(least, testing.AllocsPerRun(50, func() { handler.ServeHTTP(w, req) }))
			}
			if least != 0 {
				t.Errorf("%s: %s: %v allocations", rule, method, least)
			}
			if w.Code != http.StatusOK || f.Stats().Guard.Limited != 0 {
				t.Errorf("%s: %s: status %d", rule, method, w.Code)
			}
		}
	}
}
