package hpfiber_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v3"

	hpfiber "github.com/hotparam/hotparam/adapters/fiber"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// closer is a stream that keeps how often it was closed.
type closer struct {
	io.Reader
	closed *atomic.Int64
}

func (c closer) Close() error { c.closed.Add(1); return nil }

// An answer is shared only if it is what the client of a single request would get.
func TestAnswersOfRuns(t *testing.T) {
	var opened, closed atomic.Int64
	next := func(c fiber.Ctx) error { return c.Next() }
	user := func(c fiber.Ctx) error { return c.SendString("for " + c.Get("X-User")) }
	for name, c := range map[string]struct {
		front, handler fiber.Handler
		status         int
		body, detail   string
	}{
		"shared": {next, user, 200, "for ", ""},
		"error for middleware in front": {func(c fiber.Ctx) error {
			if err := c.Next(); errors.Is(err, fiber.ErrNotFound) {
				return c.SendString("front")
			}
			return nil
		}, func(fiber.Ctx) error { return fiber.ErrNotFound }, 200, "front", "withheld"},
		"failed":      {next, func(fiber.Ctx) error { return errors.New("the handler's own") }, 500, "the handler's own", "failed"},
		"unavailable": {next, func(fiber.Ctx) error { return fiber.ErrServiceUnavailable }, 503, "Service Unavailable", "failed"},
		"stream": {next, func(c fiber.Ctx) error {
			opened.Add(1)
			return c.SendStream(closer{strings.NewReader("for " + c.Get("X-User")), &closed})
		}, 200, "for ann", "withheld"},
		"refused in front": {func(c fiber.Ctx) error {
			if c.Get("X-User") == "" {
				return c.SendString("login")
			}
			return c.Next()
		}, user, 200, "for ann", "withheld"},
		"a local of a user": {func(c fiber.Ctx) error {
			c.Locals("user", c.Get("X-User"))
			return c.Next()
		}, func(c fiber.Ctx) error {
			name, _ := c.Locals("user").(string)
			return c.SendString("for " + name + c.IP())
		}, 200, "for 0.0.0.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			guard := middlewaretest.NewGuard(t, `{id: items, match: {route: "GET /items/{id}"}, by: ["path:id"], hot: 1000000/s, limit: {rate: 1/1h, burst: 9}, on_hot: {cache: 1m, status: [200, 404]}}`)
			middlewaretest.Heat(t, guard, "items GET /items/{id}?path:id=7")
			app := fiber.New()
			app.Use(c.front, hpfiber.Middleware(guard))
			app.Get("/items/:id", c.handler)
			var res *http.Response
			for range 2 {
				r := httptest.NewRequest(http.MethodGet, "/items/7", nil)
				r.Header.Set("X-User", "ann")
				var err error
				if res, err = app.Test(r); err != nil {
					t.Fatal(err)
				}
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			_, detail, _ := strings.Cut(res.Header.Get("Cache-Status"), "detail=")
			if res.StatusCode != c.status || string(body) != c.body || detail != c.detail {
				t.Errorf("%d %q, %v; want %d %q, %s", res.StatusCode, body, res.Header, c.status, c.body, c.detail)
			}
		})
	}
	if n, c := opened.Load(), closed.Load(); n != 3 || c != n {
		t.Errorf("%d streams were opened, %d closed", n, c)
	}
}
