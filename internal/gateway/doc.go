// Package gateway decides on requests that a gateway, such as Envoy, nginx or HAProxy, asks
// about before it passes them on. Rules, keys and limits are those of the Go middleware, and
// a request makes the same keys as it would there.
//
// The way of a request:
//
//	call.go       what every door translates a gateway's question into
//	target.go     the path and the query of a request's target
//	clean.go      the path as the application will see it
//	params.go     the parameters ctx:name of a call
//	decider.go    the decision, by the rules of one file
//	together.go   the decision on several that pass together or not at all
//	tickets.go    requests whose end another call tells
//	peers.go      who may ask at a door
//	admission.go  which connections a door has; secure.go with TLS
//
// Each door is a package of its own below this one. It imports this package and the library
// of its protocol; cmd/hotparam makes them from the file's section guard.
package gateway
