// Package middlewaretest is the suite that each adapter of a router or a framework passes.
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
// suite.go is what a caller sees, fixture.go a server and what belongs to it. The cases are
// in cases_route.go, which keys requests make; cases_answer.go, what is refused, waits, or is
// answered otherwise; cases_message.go, bodies and streams; and cases_end.go, what happens
// when a handler ends.
package middlewaretest
