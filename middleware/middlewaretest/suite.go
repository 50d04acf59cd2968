package middlewaretest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/hotparam/hotparam/middleware"
)

// Server describes the server that the suite needs.
type Server struct {
	Guard  *middleware.Guard // in front of all routes
	Routes []Route
	// Context returns the context of a request with these headers, for a middleware in
	// front of the guard. A nil Context means that there is none.
	Context func(context.Context, http.Header) context.Context
	// Front returns headers that the same middleware sets on the response to a request with these
	// headers. A nil Front means that there are none.
	Front func(http.Header) http.Header
}

// Route is a route of a server.
type Route struct {
	Method  string
	Pattern string // in the syntax of http.ServeMux: "/u/{id}", "/files/{path...}"
	// Handler takes the router's path parameters from PathValue, by the names of Pattern,
	// as the router returns them.
	Handler http.Handler
}

// Start serves s until the test ends, and returns the base URL: "http://127.0.0.1:8080".
// If a handler panics, the client gets status 500 or no answer, and the server continues.
type Start func(tb testing.TB, s Server) (baseURL string)

// Handler returns a Start for handlers of package net/http.
func Handler(build func(Server) http.Handler) Start {
	return func(tb testing.TB, s Server) string {
		server := httptest.NewUnstartedServer(build(s))
		server.Config.ErrorLog = discard
		server.Start()
		tb.Cleanup(server.Close)
		return server.URL
	}
}

// Case is one case of the suite.
type Case struct {
	Name string
	run  func(*testing.T, Start)
}

// Cases returns the cases of the suite, in their order.
func Cases() []Case {
	return slices.Concat(routeCases, answerCases, messageCases, endCases, onHotCases)
}

// Run runs all cases except the ones named in without, which the server cannot pass.
func Run(t *testing.T, start Start, without ...string) {
	for _, c := range Cases() {
		if i := slices.Index(without, c.Name); i >= 0 {
			without = slices.Delete(slices.Clone(without), i, i+1)
			continue
		}
		t.Run(c.Name, func(t *testing.T) { c.run(t, start) })
	}
	if len(without) > 0 {
		t.Errorf("there are no cases %q", without)
	}
}

// NewGuard returns a guard for tests of one framework alone. It has these rules, one per line
// in the file's syntax, and its counts are dropped.
func NewGuard(tb testing.TB, rules string, opts ...middleware.Option) *middleware.Guard {
	tb.Helper()
	guard, _ := newGuard(tb, &countingSink{counts: make(map[string]int64)}, rules, opts...)
	return guard
}
