//go:build !race

package hotparam

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A request that is not hot allocates nothing, from the handler on. (The race detector makes pools
// drop their contents.)
func TestColdRequestDoesNotAllocate(t *testing.T) {
	const requests = 50 // fewer than make the key hot
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), searchRule))
	handler := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	req := httptest.NewRequest(http.MethodGet, "/search?q=phone", http.NoBody)
	req.Pattern = "GET /search"
	w := httptest.NewRecorder()
	if n := testing.AllocsPerRun(requests, func() { handler.ServeHTTP(w, req) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if w.Code != http.StatusOK || f.Stats().Guard.Limited != 0 {
		t.Errorf("status %d", w.Code)
	}
}
