package hpchi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	hpchi "github.com/hotparam/hotparam/adapters/chi"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// A run begins behind the guard, with the route that chi has found for the request, unless middleware
// has put something else into chi's context.
func TestRuns(t *testing.T) {
	inContext := func(change func(*chi.Context, *http.Request)) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				change(chi.RouteContext(r.Context()), r)
				next.ServeHTTP(w, r)
			})
		}
	}
	for name, c := range map[string]struct {
		front  func(http.Handler) http.Handler
		target string
		user   string // the user that the handler sees
		detail string
	}{
		"authenticated in front": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-User") == "" {
					http.Error(w, "who?", http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			})
		}, "/items/7", "", ""},
		"a parameter of a user": {inContext(func(c *chi.Context, r *http.Request) {
			c.URLParams.Add("user", r.Header.Get("X-User"))
		}), "/items/7", "ann", "withheld"},
		"another method":  {inContext(func(c *chi.Context, _ *http.Request) { c.RouteMethod = "DELETE" }), "/items/7", "ann", "withheld"},
		"HEAD of its own": {inContext(func(c *chi.Context, _ *http.Request) { c.RouteMethod = "HEAD" }), "/items/7", "", ""},
		"another path":    {inContext(func(c *chi.Context, _ *http.Request) { c.RoutePath = "/items/7" }), "/old", "", ""},
		"no route":        {inContext(func(*chi.Context, *http.Request) {}), "/none", "", "withheld"},
	} {
		t.Run(name, func(t *testing.T) {
			guard := middlewaretest.NewGuard(t, `{id: all, match: {route: "*"}, hot: 1000000/s, limit: {rate: 1/1h, burst: 9}, on_hot: {cache: 1m, status: [200, 404]}}`)
			const item = " /items/{id}?path:id=7"
			middlewaretest.Heat(t, guard, "all GET"+item, "all HEAD"+item, "all DELETE"+item, "all "+middleware.Unrouted)
			r := chi.NewRouter()
			r.Use(c.front, hpchi.Middleware(guard))
			served := func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "%s%s for %s %s", chi.URLParam(r, "id"), r.PathValue("id"), r.Header.Get("X-User"), chi.URLParam(r, "user"))
			}
			r.Get("/items/{id}", served)
			r.Head("/items/{id}", served)
			r.Delete("/items/{id}", served)
			var w *httptest.ResponseRecorder
			for range 2 {
				w = httptest.NewRecorder()
				in := httptest.NewRequest(http.MethodGet, c.target, nil)
				in.Header.Set("X-User", "ann")
				r.ServeHTTP(w, in)
			}
			how := w.Header().Get("Cache-Status")
			_, detail, _ := strings.Cut(how, "detail=")
			if want := "77 for " + c.user + " "; how == "" || detail != c.detail || w.Code == http.StatusOK && strings.TrimSuffix(w.Body.String(), c.user) != want {
				t.Errorf("%d %q, %q; want %q, %s", w.Code, w.Body, how, want, c.detail)
			}
		})
	}
}
