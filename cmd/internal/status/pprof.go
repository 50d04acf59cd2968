package status

import (
	"context"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"
)

// PprofPath is the path that [Pprof] serves, with all below it.
const PprofPath = "/debug/pprof/"

// Pprof returns a handler of the profiles that `go tool pprof` reads. The caller checks who may
// read them: a profile has no values of parameters, but shows addresses of the heap and the
// command line.
func Pprof() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PprofPath, pprof.Index)
	mux.HandleFunc("GET "+PprofPath+"cmdline", pprof.Cmdline)
	mux.HandleFunc("GET "+PprofPath+"symbol", pprof.Symbol)
	// The lengths are the defaults of net/http/pprof.
	mux.Handle("GET "+PprofPath+"profile", patient(30*time.Second, pprof.Profile))
	mux.Handle("GET "+PprofPath+"trace", patient(time.Second, pprof.Trace))
	return mux
}

// longestProfile bounds the length of a profile.
const longestProfile = 5 * time.Minute

// patient lets a handler write for as long as its request asks for with the parameter seconds, or
// for defaultLength. The server's own timeout suits scrapes.
func patient(defaultLength time.Duration, handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := defaultLength
		if n, err := strconv.ParseFloat(r.FormValue("seconds"), 64); err == nil && n > 0 {
			asked = time.Duration(n * float64(time.Second))
		}
		if asked > longestProfile {
			http.Error(w, "seconds: at most "+longestProfile.String(), http.StatusBadRequest)
			return
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(asked + 10*time.Second)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		// Without a server in the context, pprof does not refuse profiles longer than its
		// timeout.
		handler(w, r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, nil)))
	})
}
