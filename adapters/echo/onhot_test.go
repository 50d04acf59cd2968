package hpecho_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	hpecho "github.com/hotparam/hotparam/adapters/echo"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// An answer is shared only if it is what the client of a single request would get.
func TestAnswersOfRuns(t *testing.T) {
	same := func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	user := func(c *echo.Context) error { return c.String(http.StatusOK, "for "+c.Request().Header.Get("X-User")) }
	for name, c := range map[string]struct {
		front        echo.MiddlewareFunc
		handler      echo.HandlerFunc
		status       int
		body, detail string
	}{
		"shared": {same, user, 200, "for ", ""},
		"error for middleware in front": {func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				if err := next(c); errors.Is(err, echo.ErrNotFound) {
					return c.String(http.StatusOK, "front")
				}
				return nil
			}
		}, func(*echo.Context) error { return echo.ErrNotFound }, 200, "front", "withheld"},
		"failed": {same, func(*echo.Context) error { return errors.New("the handler's own") }, 500, "{\"message\":\"Internal Server Error\"}\n", "failed"},
		"failed after writing": {same, func(c *echo.Context) error {
			_ = user(c)
			return errors.New("the handler's own")
		}, 200, "for ann", "withheld"},
		"nothing written": {func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				if err := next(c); err != nil {
					return err
				}
				return c.String(http.StatusOK, "front")
			}
		}, func(*echo.Context) error { return nil }, 200, "front", "withheld"},
		"refused in front": {func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				if c.Request().Header.Get("X-User") == "" {
					return c.String(http.StatusOK, "login")
				}
				return next(c)
			}
		}, user, 200, "for ann", "withheld"},
	} {
		t.Run(name, func(t *testing.T) {
			guard := middlewaretest.NewGuard(t, `{id: items, match: {route: "GET /items/{id}"}, by: ["path:id"], hot: 1000000/s, limit: {rate: 1/1h, burst: 9}, on_hot: {cache: 1m, status: [200, 404]}}`)
			middlewaretest.Heat(t, guard, "items GET /items/{id}?path:id=7")
			e := echo.New()
			e.Use(c.front, hpecho.Middleware(guard))
			e.GET("/items/:id", c.handler)
			var w *httptest.ResponseRecorder
			for range 2 {
				w = httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "/items/7", nil)
				r.Header.Set("X-User", "ann")
				e.ServeHTTP(w, r)
			}
			_, detail, _ := strings.Cut(w.Header().Get("Cache-Status"), "detail=")
			if w.Code != c.status || w.Body.String() != c.body || detail != c.detail {
				t.Errorf("%d %q, %v; want %d %q, %s", w.Code, w.Body, w.Header(), c.status, c.body, c.detail)
			}
		})
	}
}

// Middleware that rewrites a target before the route is known serves a run as it serves a request.
// If it rewrites the target to another one, the run is withheld.
func TestRewrittenTargets(t *testing.T) {
	for _, c := range []struct {
		name   string
		cut    int // how often a request is rewritten
		target string
		body   string
		detail string
	}{
		{"once", 9, "/old/items/7?q=1", "/items/7", ""},
		{"again", 1, "/old/old/items/7?q=1", "/old/items/7", "withheld"},
	} {
		guard := middlewaretest.NewGuard(t, `{id: all, match: {route: "*"}, by: [q], hot: 1000000/s, limit: {rate: 1/1h, burst: 9}, on_hot: {cache: 1m}}`)
		middlewaretest.Heat(t, guard, "all GET /items/{id}?q=1", "all GET /old/items/{id}?q=1")
		e := echo.New()
		e.Pre(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(x *echo.Context) error {
				u := *x.Request().URL
				u.Path = strings.Replace(u.Path, "/old", "", c.cut)
				x.Request().URL = &u
				return next(x)
			}
		})
		e.Use(hpecho.Middleware(guard))
		path := func(x *echo.Context) error { return x.String(http.StatusOK, x.Request().URL.Path) }
		e.GET("/items/:id", path)
		e.GET("/old/items/:id", path)
		var w *httptest.ResponseRecorder
		for range 2 {
			w = httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.target, nil))
		}
		how := w.Header().Get("Cache-Status")
		_, detail, _ := strings.Cut(how, "detail=")
		if w.Body.String() != c.body || detail != c.detail || how == "" {
			t.Errorf("%s: %d %q, %q", c.name, w.Code, w.Body, how)
		}
	}
}
