package middlewaretest

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/middleware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mux returns a mux of the server's routes.
func mux(s Server) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range s.Routes {
		mux.Handle(r.Method+" "+r.Pattern, r.Handler)
	}
	return mux
}

// before wraps a guard with the middleware that the server needs in front of it.
func before(s Server, next http.Handler) http.Handler {
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

// guarded puts the guard in front of next, with the route that the mux finds.
func guarded(s Server, mux *http.ServeMux, next http.HandlerFunc) http.Handler {
	h := s.Guard.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, r.Pattern = mux.Handler(r)
		h.ServeHTTP(w, r)
	})
}

// net/http itself passes the suite.
func TestServeMux(t *testing.T) {
	Run(t, Handler(func(s Server) http.Handler { return before(s, s.Guard.Handler(mux(s))) }))
}

// broken are adapters with a fault, each with the cases that find it.
var broken = map[string]struct {
	build func(Server) http.Handler
	found []string
}{
	"the route is the path": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, s.Guard.Handler(http.HandlerFunc(routes.ServeHTTP)))
		},
		[]string{"route template", "unknown routes are bounded"},
	},
	"the handler is called after a refusal": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				called := false
				inner := func(w http.ResponseWriter, r *http.Request) { called = true; routes.ServeHTTP(w, r) }
				guarded(s, routes, inner).ServeHTTP(w, r)
				if !called {
					routes.ServeHTTP(w, r)
				}
			}))
		},
		[]string{"refused", "served"},
	},
	"the handler writes past the guard": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				guarded(s, routes, func(_ http.ResponseWriter, r *http.Request) { routes.ServeHTTP(w, r) }).ServeHTTP(w, r)
			}))
		},
		[]string{"cost in bytes"},
	},
	"the time is charged at the end": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, pattern := routes.Handler(r)
				d, ticket := s.Guard.Begin(middleware.Request{Method: r.Method, Path: r.URL.Path, Pattern: pattern})
				if !d.Allowed {
					middleware.Refuse(w, r, d)
					return
				}
				begin := time.Now()
				defer func() { ticket.End(middleware.Cost{Time: time.Since(begin)}) }()
				routes.ServeHTTP(w, r)
			}))
		},
		[]string{"cost in time"},
	},
	"the handler gets another request than the guard's": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				guarded(s, routes, func(w http.ResponseWriter, _ *http.Request) { routes.ServeHTTP(w, r) }).ServeHTTP(w, r)
			}))
		},
		[]string{"cost in units"},
	},
	"the guard stands before the other middleware": {
		func(s Server) http.Handler { return s.Guard.Handler(before(s, mux(s))) },
		[]string{"context values"},
	},
	"the handler runs on after the guard": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, s.Guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				done := make(chan struct{})
				buffered := httptest.NewRecorder()
				go func() { defer close(done); defer func() { _ = recover() }(); routes.ServeHTTP(buffered, r) }()
				select {
				case <-done:
				case <-r.Context().Done():
				}
				for name, values := range buffered.Header() {
					w.Header()[name] = values
				}
				w.WriteHeader(buffered.Code)
				_, _ = buffered.Body.WriteTo(w)
			})))
		},
		[]string{"streams", "client that leaves"},
	},
	"a run has the request of a user": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				own := r.Clone(context.WithoutCancel(r.Context()))
				_, r.Pattern = routes.Handler(r)
				s.Guard.Handler(leader{routes, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					routes.ServeHTTP(w, own)
				})}).ServeHTTP(w, r)
			}))
		},
		[]string{"together: nothing of a user"},
	},
	"a run records the middleware in front": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, r.Pattern = routes.Handler(r)
				s.Guard.Handler(leader{routes, before(s, routes)}).ServeHTTP(w, r)
			}))
		},
		[]string{"together: middleware in front"},
	},
	"there are no runs": {
		func(s Server) http.Handler {
			routes := mux(s)
			return before(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, r.Pattern = routes.Handler(r)
				s.Guard.Handler(leader{routes, nil}).ServeHTTP(w, r)
			}))
		},
		[]string{"together", "together: refused"},
	},
}

// leader is a handler with its runs.
type leader struct {
	http.Handler
	runs http.Handler
}

func (l leader) Lead() http.Handler { return l.runs }

// The suite finds each of the faults, at least by the named cases. Each runs in its own process,
// since it fails.
func TestFindsFaults(t *testing.T) {
	if name := os.Getenv("HOTPARAM_BROKEN_ADAPTER"); name != "" {
		longest = 2 * time.Second
		for _, c := range Cases() {
			if slices.Contains(broken[name].found, c.Name) {
				t.Run(c.Name, func(t *testing.T) { c.run(t, Handler(broken[name].build)) })
			}
		}
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	for name, fault := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFindsFaults$", "-test.v")
			cmd.Env = append(os.Environ(), "HOTPARAM_BROKEN_ADAPTER="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Error("the suite passes")
			}
			for _, c := range fault.found {
				if !strings.Contains(string(out), "--- FAIL: TestFindsFaults/"+strings.ReplaceAll(c, " ", "_")) {
					t.Errorf("the case %q does not find it:\n%s", c, out)
				}
			}
		})
	}
}
