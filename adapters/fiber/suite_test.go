package hpfiber_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/compress"
	"github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	hpfiber "github.com/hotparam/hotparam/adapters/fiber"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// template returns a pattern of http.ServeMux in Fiber's syntax, with the names of its parameters
// in both.
func template(pattern string) (template string, names map[string]string) {
	names = make(map[string]string)
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		switch {
		case part == "{$}":
			parts[i] = ""
		case part == "{path...}":
			parts[i], names["path"] = "*", "*"
		case strings.HasPrefix(part, "{"):
			name := strings.Trim(part, "{}")
			parts[i], names[name] = ":"+name, name
		}
	}
	return strings.Join(parts, "/"), names
}

// handler calls a handler of net/http with the request's own context and parameters.
func handler(names map[string]string, next http.Handler) fiber.Handler {
	return func(c fiber.Ctx) error {
		values := make(map[string]string)
		for name, own := range names {
			values[name] = strings.Clone(c.Params(own))
		}
		ctx := c.Context()
		chunked := c.Get("Transfer-Encoding") == "chunked" || c.Request().Header.ContentLength() == -1
		fasthttpadaptor.NewFastHTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = r.WithContext(ctx)
			for name, value := range values {
				r.SetPathValue(name, value)
			}
			if chunked {
				r.ContentLength = -1
			}
			next.ServeHTTP(w, r)
		})(c.RequestCtx())
		return nil
	}
}

func withContext(s middlewaretest.Server) fiber.Handler {
	return func(c fiber.Ctx) error {
		h := make(http.Header)
		for name, values := range c.GetReqHeaders() {
			for _, value := range values {
				h.Add(strings.Clone(name), strings.Clone(value))
			}
		}
		if s.Context != nil {
			c.SetContext(s.Context(c.Context(), h))
		}
		if s.Front != nil {
			for name, values := range s.Front(h) {
				c.Response().Header.Add(name, values[0])
			}
		}
		return c.Next()
	}
}

func add(to fiber.Router, routes []middlewaretest.Route, before ...any) {
	for _, route := range routes {
		path, names := template(route.Pattern)
		handlers := append(slices.Clone(before), handler(names, route.Handler))
		to.Add([]string{route.Method}, path, handlers[0], handlers[1:]...)
	}
}

func server(s middlewaretest.Server, config fiber.Config, before ...any) *fiber.App {
	app := fiber.New(config)
	for _, handler := range before {
		app.Use(handler)
	}
	add(app, s.Routes)
	return app
}

// builds are the places where the guard may stand, and settings that change paths and bodies.
var builds = map[string]func(middlewaretest.Server) *fiber.App{
	"Use": func(s middlewaretest.Server) *fiber.App {
		return server(s, fiber.Config{}, recover.New(), withContext(s), hpfiber.Middleware(s.Guard))
	},
	"recovery behind": func(s middlewaretest.Server) *fiber.App {
		return server(s, fiber.Config{}, withContext(s), hpfiber.Middleware(s.Guard), recover.New())
	},
	"compressed behind": func(s middlewaretest.Server) *fiber.App {
		return server(s, fiber.Config{}, recover.New(), withContext(s), hpfiber.Middleware(s.Guard), compress.New())
	},
	"compressed in front": func(s middlewaretest.Server) *fiber.App {
		return server(s, fiber.Config{}, recover.New(), withContext(s), compress.New(), hpfiber.Middleware(s.Guard))
	},
	"strict": func(s middlewaretest.Server) *fiber.App {
		return server(s, fiber.Config{StrictRouting: true, CaseSensitive: true, Immutable: true}, recover.New(), withContext(s), hpfiber.Middleware(s.Guard))
	},
	"UnescapePath": func(s middlewaretest.Server) *fiber.App {
		return server(s, fiber.Config{UnescapePath: true}, recover.New(), withContext(s), hpfiber.Middleware(s.Guard))
	},
	"StreamRequestBody": func(s middlewaretest.Server) *fiber.App {
		return server(s, fiber.Config{StreamRequestBody: true, BodyLimit: 1 << 10}, recover.New(), withContext(s), hpfiber.Middleware(s.Guard))
	},
	"mounted": func(s middlewaretest.Server) *fiber.App {
		app := fiber.New()
		app.Use(recover.New())
		app.Use("/", server(s, fiber.Config{}, withContext(s), hpfiber.Middleware(s.Guard)))
		return app
	},
}

// inner are places where the guard does not see requests without a route.
var inner = map[string]func(middlewaretest.Server) *fiber.App{
	"group": func(s middlewaretest.Server) *fiber.App {
		app := server(middlewaretest.Server{}, fiber.Config{}, recover.New())
		for _, route := range s.Routes {
			at := strings.LastIndex(route.Pattern, "/")
			prefix, _ := template(route.Pattern[:at])
			path, _ := template(route.Pattern[at:])
			_, names := template(route.Pattern)
			app.Group(prefix).Add([]string{route.Method}, path, withContext(s), hpfiber.Middleware(s.Guard), handler(names, route.Handler))
		}
		return app
	},
	"route": func(s middlewaretest.Server) *fiber.App {
		app := server(middlewaretest.Server{}, fiber.Config{}, recover.New())
		add(app, s.Routes, withContext(s), hpfiber.Middleware(s.Guard))
		return app
	},
}

// start serves the app that build returns on a real connection.
func start(build func(middlewaretest.Server) *fiber.App) middlewaretest.Start {
	return func(tb testing.TB, s middlewaretest.Server) string { return serve(tb, build(s)) }
}

func serve(tb testing.TB, app *fiber.App) string {
	return serveOn(tb, app, func(l net.Listener) net.Listener { return l })
}

func serveOn(tb testing.TB, app *fiber.App, wrap func(net.Listener) net.Listener) string {
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	app.Server().Logger = log.New(io.Discard, "", 0)
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(wrap(listener), fiber.ListenConfig{DisableStartupMessage: true}) }()
	tb.Cleanup(func() {
		limit, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = app.ShutdownWithContext(limit) // connections of tests may be open
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func TestSuite(t *testing.T) {
	// fasthttp sends 100 Continue before it calls any handler, and does not notice that a client
	// disconnects.
	without := []string{"100-continue", "cancelled while it waits"}
	for name, build := range builds {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // fasthttp takes a tenth of a second to shut down
			without := slices.Clone(without)
			if strings.HasPrefix(name, "compressed") { // Fiber reads a stream to its end
				without = append(without, "streams")
			}
			middlewaretest.Run(t, start(build), without...)
		})
	}
	for name, build := range inner {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			middlewaretest.Run(t, start(build), append(without[:2:2], "unknown routes are bounded")...)
		})
	}
}
