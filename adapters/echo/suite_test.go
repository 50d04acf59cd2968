package hpecho_test

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	hpecho "github.com/hotparam/hotparam/adapters/echo"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// template returns a pattern of http.ServeMux in Echo's syntax.
func template(pattern string) string {
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		switch {
		case part == "{$}":
			parts[i] = ""
		case part == "{path...}":
			parts[i] = "*"
		case strings.HasPrefix(part, "{"):
			parts[i] = ":" + strings.TrimSuffix(part[1:], "}")
		}
	}
	return strings.Join(parts, "/")
}

func handler(next http.Handler) echo.HandlerFunc {
	return func(c *echo.Context) error {
		for _, p := range c.PathValues() {
			c.Request().SetPathValue(strings.Replace(p.Name, "*", "path", 1), p.Value)
		}
		next.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

func context(s middlewaretest.Server) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			if s.Context != nil {
				r := c.Request()
				c.SetRequest(r.WithContext(s.Context(r.Context(), r.Header)))
			}
			if s.Front != nil {
				maps.Copy(c.Response().Header(), s.Front(c.Request().Header))
			}
			return next(c)
		}
	}
}

func server(s middlewaretest.Server, config echo.RouterConfig, middleware ...echo.MiddlewareFunc) *echo.Echo {
	e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(config)})
	e.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	e.Use(middleware...)
	for _, route := range s.Routes {
		e.Add(route.Method, template(route.Pattern), handler(route.Handler))
	}
	return e
}

// builds are the places where the guard may stand, and settings that change paths.
var builds = map[string]func(middlewaretest.Server) http.Handler{
	"Use": func(s middlewaretest.Server) http.Handler {
		return server(s, echo.RouterConfig{}, middleware.Recover(), context(s), hpecho.Middleware(s.Guard))
	},
	"recovery behind": func(s middlewaretest.Server) http.Handler {
		return server(s, echo.RouterConfig{AutoHandleHEAD: true}, context(s), hpecho.Middleware(s.Guard), middleware.Recover())
	},
	"compressed behind": func(s middlewaretest.Server) http.Handler {
		return server(s, echo.RouterConfig{}, middleware.Recover(), context(s), hpecho.Middleware(s.Guard), middleware.Gzip())
	},
	"compressed in front": func(s middlewaretest.Server) http.Handler {
		return server(s, echo.RouterConfig{}, middleware.Recover(), context(s), middleware.Gzip(), hpecho.Middleware(s.Guard))
	},
	"UnescapePathParamValues": func(s middlewaretest.Server) http.Handler {
		return server(s, echo.RouterConfig{UnescapePathParamValues: true}, middleware.Recover(), context(s), hpecho.Middleware(s.Guard))
	},
	"decoded paths": func(s middlewaretest.Server) http.Handler {
		return server(s, echo.RouterConfig{UseEscapedPathForMatching: true}, middleware.Recover(), context(s), hpecho.Middleware(s.Guard))
	},
}

// inner are places where the guard does not see requests without a route.
var inner = map[string]func(middlewaretest.Server) http.Handler{
	"group": func(s middlewaretest.Server) http.Handler {
		e := server(middlewaretest.Server{}, echo.RouterConfig{}, middleware.Recover())
		for _, route := range s.Routes {
			path := template(route.Pattern)
			at := strings.LastIndex(path, "/")
			e.Group(path[:at]).Add(route.Method, path[at:], handler(route.Handler), context(s), hpecho.Middleware(s.Guard))
		}
		return e
	},
	"route": func(s middlewaretest.Server) http.Handler {
		e := server(middlewaretest.Server{}, echo.RouterConfig{}, middleware.Recover())
		for _, route := range s.Routes {
			e.Add(route.Method, template(route.Pattern), handler(route.Handler), context(s), hpecho.Middleware(s.Guard))
		}
		return e
	},
}

func TestSuite(t *testing.T) {
	for name, build := range builds {
		t.Run(name, func(t *testing.T) { middlewaretest.Run(t, middlewaretest.Handler(build)) })
	}
	for name, build := range inner {
		t.Run(name, func(t *testing.T) {
			middlewaretest.Run(t, middlewaretest.Handler(build), "unknown routes are bounded")
		})
	}
}
