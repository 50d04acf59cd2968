package hpchi_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	hpchi "github.com/hotparam/hotparam/adapters/chi"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// template returns a pattern of http.ServeMux in chi's syntax.
func template(pattern string) string {
	return strings.NewReplacer("{path...}", "*", "{$}", "").Replace(pattern)
}

// handler stores chi's value of the rest of a path under the name that the suite uses.
func handler(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("path", chi.URLParam(r, "*"))
		next.ServeHTTP(w, r)
	}
}

func context(s middlewaretest.Server) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.Context != nil {
				r = r.WithContext(s.Context(r.Context(), r.Header))
			}
			if s.Front != nil {
				maps.Copy(w.Header(), s.Front(r.Header))
			}
			next.ServeHTTP(w, r)
		})
	}
}

// quiet keeps the recovery's stack out of the test's output.
func quiet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// builds are the places where the guard may stand.
var builds = map[string]func(middlewaretest.Server) http.Handler{
	"Use": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, context(s), hpchi.Middleware(s.Guard))
		for _, route := range s.Routes {
			r.Method(route.Method, template(route.Pattern), handler(route.Handler))
		}
		return r
	},
	"recovery behind": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(context(s), hpchi.Middleware(s.Guard), quiet, middleware.GetHead)
		for _, route := range s.Routes {
			r.Method(route.Method, template(route.Pattern), handler(route.Handler))
		}
		return r
	},
	"compressed behind": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, context(s), hpchi.Middleware(s.Guard), middleware.Compress(5))
		for _, route := range s.Routes {
			r.Method(route.Method, template(route.Pattern), handler(route.Handler))
		}
		return r
	},
	"compressed in front": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, context(s), middleware.Compress(5), hpchi.Middleware(s.Guard))
		for _, route := range s.Routes {
			r.Method(route.Method, template(route.Pattern), handler(route.Handler))
		}
		return r
	},
	"CleanPath": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, middleware.CleanPath, middleware.StripSlashes, context(s), hpchi.Middleware(s.Guard))
		for _, route := range s.Routes {
			r.Method(route.Method, template(route.Pattern), handler(route.Handler))
		}
		return r
	},
	"mounted": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, context(s), hpchi.Middleware(s.Guard))
		for mount, routes := range byMount(s) {
			if mount == "/" {
				add(r, routes)
			} else {
				r.Route(mount, func(r chi.Router) { add(r, routes) })
			}
		}
		return r
	},
}

// inner are places where the guard does not see requests without a route.
var inner = map[string]func(middlewaretest.Server) http.Handler{
	"With": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, context(s))
		for _, route := range s.Routes {
			r.With(hpchi.Middleware(s.Guard)).Method(route.Method, template(route.Pattern), handler(route.Handler))
		}
		return r
	},
	"Group of mounts": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, context(s))
		r.Group(func(r chi.Router) {
			r.Use(hpchi.Middleware(s.Guard))
			for mount, routes := range byMount(s) {
				if mount == "/" {
					add(r, routes)
				} else {
					r.Route(mount, func(r chi.Router) { add(r, routes) })
				}
			}
		})
		return r
	},
	"Use of a mounted router": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, context(s))
		for mount, routes := range byMount(s) {
			if mount == "/" {
				add(r.With(hpchi.Middleware(s.Guard)), routes)
				continue
			}
			r.Route(mount, func(r chi.Router) {
				r.Use(hpchi.Middleware(s.Guard))
				add(r, routes)
			})
		}
		return r
	},
	"With in a mounted router": func(s middlewaretest.Server) http.Handler {
		r := chi.NewRouter()
		r.Use(quiet, context(s))
		for mount, routes := range byMount(s) {
			if mount == "/" {
				add(r.With(hpchi.Middleware(s.Guard)), routes)
				continue
			}
			r.Route(mount, func(r chi.Router) { add(r.With(hpchi.Middleware(s.Guard)), routes) })
		}
		return r
	},
}

// byMount groups the routes by the first segments of their patterns, and removes these segments.
func byMount(s middlewaretest.Server) map[string][]middlewaretest.Route {
	mounts := make(map[string][]middlewaretest.Route)
	for _, route := range s.Routes {
		mount, rest, _ := strings.Cut(route.Pattern[1:], "/")
		if strings.HasPrefix(mount, "{") {
			mount, rest = "", route.Pattern[1:]
		}
		route.Pattern = "/" + rest
		mounts["/"+mount] = append(mounts["/"+mount], route)
	}
	return mounts
}

func add(r chi.Router, routes []middlewaretest.Route) {
	for _, route := range routes {
		r.Method(route.Method, template(route.Pattern), handler(route.Handler))
	}
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
