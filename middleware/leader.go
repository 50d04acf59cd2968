package middleware

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
)

// Leader is a handler whose runs use state of the goroutine that serves the request, such as a
// framework's context.
type Leader interface {
	http.Handler
	// Lead returns a handler for one run in another goroutine, with a request that has only what
	// identifies the answer. It is called in the goroutine of the request. If it returns nil, the
	// requests are handled alone.
	Lead() http.Handler
}

// Restart returns a handler for [Leader.Lead] that serves a run by a router from its beginning. The
// guard lets the run pass if it has the same route and target as before, and the handler behind the
// guard writes the answer. Whatever the router writes otherwise is dropped: the middleware in front
// of the guard serves each request itself. If the run does not pass the guard, its answer is
// withheld.
func Restart(router http.Handler) http.Handler { return restart{router} }

// Withhold keeps the answer of a run from all requests, even if it is written: they are handled
// alone. w is the run's writer, or has it behind Unwrap. Withhold does nothing to other writers.
func Withhold(w http.ResponseWriter) {
	for {
		switch x := w.(type) {
		case interface{ Withhold() }:
			x.Withhold()
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = x.Unwrap()
		default:
			return
		}
	}
}

// withheld is the run of a Leader that has none.
var withheld = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { Withhold(w) })

// run is one run of the handler for several requests.
type run struct {
	guard   *Guard
	ticket  *Ticket
	next    http.Handler
	pattern string   // pattern of the request that was counted
	url     *url.URL // its URL

	writer http.ResponseWriter // writer of a run that has restarted, or nil
	state  atomic.Int32        // of such a run
}

// States of a run that has restarted. A router may return while the handler still runs, for example
// after a time.
const (
	runStarted int32 = iota
	runPassed        // the guard has passed it to the handler
	runReturned
	runPanicked
)

type runKey struct{}

func (x *run) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.pattern, x.url = r.Pattern, r.URL
	r = r.WithContext(context.WithValue(r.Context(), runKey{}, x))
	if x.ticket == nil {
		x.next.ServeHTTP(w, r)
		return
	}
	x.ticket.serve(w, r, x.next)
}

// runOf returns the run that the request belongs to, or nil.
func (g *Guard) runOf(r *http.Request) *run {
	if x, _ := r.Context().Value(runKey{}).(*run); x != nil && x.guard == g {
		return x
	}
	return nil
}

// PassRun passes a run that [Restart] has brought to the guard again to next. It is for adapters that
// do not use [Guard.Handler]. r has the context of the run's request, and the route and target that
// the guard would see now. next gets no writer if the run has passed a guard before.
func PassRun(r *http.Request, next http.Handler) {
	if x, ok := r.Context().Value(runKey{}).(*run); ok {
		x.pass(nil, r, next)
	}
}

// pass passes a run to the handler behind the guard. It is neither counted nor limited again.
func (x *run) pass(w http.ResponseWriter, r *http.Request, next http.Handler) {
	switch {
	case x.writer == nil:
		next.ServeHTTP(w, r)
	case r.Pattern != x.pattern || *r.URL != *x.url: // another request than the one that was counted
	case x.state.CompareAndSwap(runStarted, runPassed):
		state := runPanicked
		defer func() { x.state.Store(state) }()
		next.ServeHTTP(x.writer, r)
		state = runReturned
	default: // the guard is there twice
		next.ServeHTTP(w, r)
	}
}

type restart struct{ router http.Handler }

func (h restart) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := r.Context().Value(runKey{}).(*run)
	x.writer = w
	h.router.ServeHTTP(&dropped{make(http.Header)}, r)
	switch x.state.Load() {
	case runReturned:
	case runPanicked: // and the router has recovered
		panic(http.ErrAbortHandler)
	default:
		Withhold(w)
	}
}

// dropped drops what is written to it.
type dropped struct{ header http.Header }

func (w *dropped) Header() http.Header { return w.header }

func (w *dropped) Write(p []byte) (int, error) { return len(p), nil }

func (w *dropped) WriteHeader(int) {}
