package hpgin_test

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	hpgin "github.com/hotparam/hotparam/adapters/gin"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

func init() { gin.SetMode(gin.ReleaseMode) }

// template returns a pattern of http.ServeMux in gin's syntax.
func template(pattern string) string {
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		switch {
		case part == "{$}":
			parts[i] = ""
		case strings.HasSuffix(part, "...}"):
			parts[i] = "*" + strings.TrimSuffix(part[1:], "...}")
		case strings.HasPrefix(part, "{"):
			parts[i] = ":" + strings.TrimSuffix(part[1:], "}")
		}
	}
	return strings.Join(parts, "/")
}

func handler(next http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		for _, p := range c.Params {
			if strings.Contains(c.FullPath(), "/*"+p.Key) {
				p.Value = strings.TrimPrefix(p.Value, "/")
			}
			c.Request.SetPathValue(p.Key, p.Value)
		}
		next.ServeHTTP(c.Writer, c.Request)
	}
}

func context(s middlewaretest.Server) gin.HandlerFunc {
	return func(c *gin.Context) {
		if s.Context != nil {
			c.Request = c.Request.WithContext(s.Context(c.Request.Context(), c.Request.Header))
		}
		if s.Front != nil {
			maps.Copy(c.Writer.Header(), s.Front(c.Request.Header))
		}
		c.Next()
	}
}

func engine(s middlewaretest.Server, middleware func(guard gin.HandlerFunc) []gin.HandlerFunc) *gin.Engine {
	r := gin.New()
	r.Use(middleware(hpgin.Middleware(s.Guard, hpgin.WithEngine(r)))...)
	for _, route := range s.Routes {
		r.Handle(route.Method, template(route.Pattern), handler(route.Handler))
	}
	return r
}

// gzipWriter compresses what it is given.
type gzipWriter struct {
	gin.ResponseWriter
	compressed *gzip.Writer // nil until something is written
}

func (w *gzipWriter) Write(p []byte) (int, error) {
	if w.compressed == nil {
		w.compressed = gzip.NewWriter(w.ResponseWriter)
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Del("Content-Length")
	}
	return w.compressed.Write(p)
}

func (w *gzipWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// compress is a middleware as those of gin's users.
func compress(c *gin.Context) {
	if strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
		w := &gzipWriter{ResponseWriter: c.Writer}
		defer func() {
			if w.compressed != nil {
				_ = w.compressed.Close()
			}
		}()
		c.Writer = w
	}
	c.Next()
}

func recovery() gin.HandlerFunc { return gin.RecoveryWithWriter(io.Discard) }

// builds are the places where the guard may stand, and settings that change paths.
var builds = map[string]func(middlewaretest.Server) http.Handler{
	"Use": func(s middlewaretest.Server) http.Handler {
		return engine(s, func(guard gin.HandlerFunc) []gin.HandlerFunc {
			return []gin.HandlerFunc{recovery(), context(s), guard}
		})
	},
	"recovery behind": func(s middlewaretest.Server) http.Handler {
		return engine(s, func(guard gin.HandlerFunc) []gin.HandlerFunc {
			return []gin.HandlerFunc{context(s), guard, recovery()}
		})
	},
	"compressed behind": func(s middlewaretest.Server) http.Handler {
		return engine(s, func(guard gin.HandlerFunc) []gin.HandlerFunc {
			return []gin.HandlerFunc{recovery(), context(s), guard, compress}
		})
	},
	"compressed in front": func(s middlewaretest.Server) http.Handler {
		return engine(s, func(guard gin.HandlerFunc) []gin.HandlerFunc {
			return []gin.HandlerFunc{recovery(), context(s), compress, guard}
		})
	},
	"UseRawPath": func(s middlewaretest.Server) http.Handler {
		r := engine(s, func(guard gin.HandlerFunc) []gin.HandlerFunc {
			return []gin.HandlerFunc{recovery(), context(s), guard}
		})
		r.UseRawPath, r.RemoveExtraSlash = true, true
		return r
	},
	"UseEscapedPath": func(s middlewaretest.Server) http.Handler {
		r := engine(s, func(guard gin.HandlerFunc) []gin.HandlerFunc {
			return []gin.HandlerFunc{recovery(), context(s), guard}
		})
		r.UseEscapedPath, r.UnescapePathValues, r.HandleMethodNotAllowed = true, false, true
		return r
	},
}

// inner are places where the guard does not see requests without a route.
var inner = map[string]func(middlewaretest.Server) http.Handler{
	"group": func(s middlewaretest.Server) http.Handler {
		r := gin.New()
		r.Use(recovery())
		for _, route := range s.Routes {
			path := template(route.Pattern)
			at := strings.LastIndex(path, "/")
			r.Group(path[:at], context(s), hpgin.Middleware(s.Guard, hpgin.WithEngine(r))).Handle(route.Method, path[at:], handler(route.Handler))
		}
		return r
	},
	"route": func(s middlewaretest.Server) http.Handler {
		r := gin.New()
		r.Use(recovery())
		for _, route := range s.Routes {
			r.Handle(route.Method, template(route.Pattern), context(s), hpgin.Middleware(s.Guard, hpgin.WithEngine(r)), handler(route.Handler))
		}
		return r
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
