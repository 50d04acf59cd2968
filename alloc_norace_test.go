//go:build !race

package hotparam

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A request that is not hot allocates nothing, from the handler on. (The race detector makes pools
// drop their contents.)
func TestColdRequestDoesNotAllocate(t *testing.T) {
	const requests = 50 // fewer than make the key hot
	onHot := strings.Replace(searchRule, "limit:", "on_hot: {cache: 1s}, limit:", 1)
	for _, rule := range []string{searchRule, onHot, onHot + `
  - {id: all, match: {route: "*"}, by: all, hot: 1000/s, on_hot: {cache: 1s}}`} {
		f := open(t, shop("redis://"+nowhere(t), nowhere(t), rule))
		handler := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := httptest.NewRequest(method, "/search?q=phone", http.NoBody)
			req.Pattern = "GET /search"
			w := httptest.NewRecorder()
			if n := testing.AllocsPerRun(requests, func() { handler.ServeHTTP(w, req) }); n != 0 {
				t.Errorf("%s: %s: %v allocations", rule, method, n)
			}
			if w.Code != http.StatusOK || f.Stats().Guard.Limited != 0 {
				t.Errorf("%s: %s: status %d", rule, method, w.Code)
			}
		}
	}
}
