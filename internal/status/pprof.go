package status

import (
	"context"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"
)

const PprofPath = "/debug/pprof/"

// Pprof serves what `go tool pprof` reads. The caller checks who may read it: a profile
// has no values of parameters, but it shows addresses of the heap and the command line.
func Pprof() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PprofPath, pprof.Index)
	mux.HandleFunc("GET "+PprofPath+"cmdline", pprof.Cmdline)
	mux.HandleFunc("GET "+PprofPath+"symbol", pprof.Symbol)
	mux.Handle("GET "+PprofPath+"profile", patient(30*time.Second, pprof.Profile))
	mux.Handle("GET "+PprofPath+"trace", patient(time.Second, pprof.Trace))
	return mux
}

// longestProfile bounds how long a client may be served.
const longestProfile = 5 * time.Minute

// patient lets a handler write for as long as its request asks for, by the parameter seconds:
// the server's own time-out is that of a scrape.
func patient(otherwise time.Duration, handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := otherwise
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
		// Or pprof would refuse what is longer than the server's time-out.
		handler(w, r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, nil)))
	})
}
