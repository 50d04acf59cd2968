// Package adapter passes the requests of a router through a guard, so that rules see the
// router's own routes and path parameters.
//
// It is for adapters to routers whose handlers have an [http.ResponseWriter] and an
// [*http.Request]. Applications import the adapter of their router, such as
// github.com/hotparam/hotparam/adapters/chi. Package middlewaretest is the test suite that each
// adapter has to pass.
//
//	request ─► Adapter.Serve ─► Guard.Handler ─► next     adapter.go
//	             template.go: the pattern, and the path with the router's values
//	             colons.go: ":name" and "*name" in it
//	             resolve.go: the templates of a router, also for requests other than net/http's
package adapter
