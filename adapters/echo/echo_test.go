package hpecho_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	hpecho "github.com/hotparam/hotparam/adapters/echo"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// A handler's error reaches the server's error handler, and a refusal does not.
func TestErrors(t *testing.T) {
	guard := middlewaretest.NewGuard(t, `{id: bytes, match: {route: "GET /fails"}, count: bytes, limit: {rate: 9/1h, burst: 9}}
		{id: once, match: {route: "GET /fails"}, limit: {rate: 1/1h, burst: 1}}`)
	own := errors.New("the handler's own")
	e := echo.New()
	var got []error
	e.HTTPErrorHandler = func(c *echo.Context, err error) {
		got = append(got, err)
		_ = c.String(http.StatusTeapot, "by the error handler")
	}
	var committed bool
	var status int
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			err := next(c)
			if r, unwrapErr := echo.UnwrapResponse(c.Response()); unwrapErr == nil {
				committed, status = r.Committed, r.Status
			}
			return err
		}
	}, hpecho.Middleware(guard))
	e.GET("/fails", func(c *echo.Context) error {
		if _, err := echo.UnwrapResponse(c.Response()); err != nil {
			t.Errorf("the handler's response: %v", err)
		}
		return own
	})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/fails", nil))
	if len(got) != 1 || !errors.Is(got[0], own) || w.Code != http.StatusTeapot || committed {
		t.Errorf("failed: %d, errors %v, committed %v", w.Code, got, committed)
	}
	w = httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/fails", nil))
	if len(got) != 1 || w.Code != http.StatusTooManyRequests || !committed || status != w.Code {
		t.Errorf("refused: %d, errors %v, committed %v with %d", w.Code, got, committed, status)
	}
}
