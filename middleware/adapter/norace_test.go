//go:build !race

package adapter

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Under the race detector the pool drops calls at random.
func TestAllocatesNothing(t *testing.T) {
	f := newFixture(t)
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/u/7?q=phone", nil)
	if n := testing.AllocsPerRun(1000, func() {
		var values [1]string
		values[0] = "7"
		f.Serve("", w, r, Route{Template: "/u/:id", Values: values[:]})
	}); n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}
