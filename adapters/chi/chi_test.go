package hpchi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/adapter"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

func TestParse(t *testing.T) {
	for template, want := range map[string][]adapter.Part{
		"/":                           {{Text: "/"}},
		"/u/{id}":                     {{Text: "/u/"}, {Name: "id"}},
		"/u/{id:[0-9]{2,4}}/x":        {{Text: "/u/"}, {Name: "id"}, {Text: "/x"}},
		"/{month}-{day}":              {{Text: "/"}, {Name: "month"}, {Text: "-"}, {Name: "day"}},
		"/files/*":                    {{Text: "/files/"}, {Name: "*", Rest: true}},
		"/{name:[a-z]+}.{ext:\\w+}/*": {{Text: "/"}, {Name: "name"}, {Text: "."}, {Name: "ext"}, {Text: "/"}, {Name: "*", Rest: true}},
	} {
		if got := parse(template); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", template, got, want)
		}
	}
}

// These are patterns that net/http has no syntax for, mounts with parameters, and a guard without
// a router.
func TestPatterns(t *testing.T) {
	var pattern string
	guard := middlewaretest.NewGuard(t, `{id: all, match: {route: "*"}, by: all, hot: 1000/s}`,
		middleware.WithHooks(middleware.Hooks{Before: func(r middleware.Request) { pattern = r.Pattern + " " + r.Path }}))
	served := func(http.ResponseWriter, *http.Request) {}
	r := chi.NewRouter()
	r.Use(Middleware(guard))
	r.Get("/{month:[0-9]+}-{day}", served)
	r.Get("/v{major}/*", served)
	r.Route("/shops/{id}", func(r chi.Router) {
		r.Get("/", served)
		r.Route("/items/{id}", func(r chi.Router) { r.Get("/", served) })
	})
	r.Mount("/debug", http.HandlerFunc(served))
	for target, want := range map[string]string{
		"/12-24":           "GET /{month_day} /12-24",
		"/v2/a/b":          "GET /{major}/{path...} /v2/a/b",
		"/shops/3":         "GET /shops/{id} /shops/3",
		"/shops/3/":        "GET /shops/{id} /shops/3",
		"/shops/3/items/7": "GET /shops/{id}/items/{id_2} /shops/3/items/7",
		"/debug/vars":      "GET /debug/{path...} /debug/vars",
		"/none/":           middleware.Unrouted + " /none/",
	} {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
		if pattern != want {
			t.Errorf("%s: %s, want %s", target, pattern, want)
		}
	}
	Middleware(guard)(http.HandlerFunc(served)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/alone", nil))
	if want := middleware.Unrouted + " /alone"; pattern != want {
		t.Errorf("without a router: %s", pattern)
	}
}
