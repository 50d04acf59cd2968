// Package middlewaretest is the test suite that each adapter of a router or a framework passes.
//
//	func TestSuite(t *testing.T) {
//		middlewaretest.Run(t, middlewaretest.Handler(func(s middlewaretest.Server) http.Handler {
//			router := …                                  // with a recovery from panics
//			router.Use(…)                                // s.Context, if it is set
//			router.Use(hprouter.Middleware(s.Guard))
//			for _, route := range s.Routes { … }         // in the router's syntax
//			return router
//		}))
//	}
//
// It sends requests over real connections, so that a server need not be of package net/http;
// see [Start]. The guard counts with a real collector, whose counts go to the suite.
//
// suite.go is the interface for callers, fixture.go a server with its guard, and sharer.go what
// answers requests of hot keys together. The cases are in cases_route.go (keys of requests),
// cases_answer.go (requests that are refused, wait, or are answered otherwise), cases_message.go
// (bodies and streams), cases_end.go (the end of a handler), cases_onhot.go (on_hot) and
// cases_onhotheader.go (the headers of shared answers, and compression).
package middlewaretest
