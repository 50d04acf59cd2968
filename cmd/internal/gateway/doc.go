// Package gateway decides requests on behalf of a gateway such as Envoy, nginx or HAProxy, which
// asks before it forwards a request. It uses the rules, keys and limits of the Go middleware: a
// request has the same keys as in a Go program.
//
// Files, in the order in which a request passes them:
//
//	call.go       Call, the form into which every door translates a gateway's query, and its
//	              ctx:name parameters
//	target.go     the path and the query of a request target
//	clean.go      the path as the application will see it
//	decider.go    the decision, by the rules of one file, on one call or on parts that pass
//	              together or not at all
//	tickets.go    in-flight requests whose end a later call reports
//	door.go       the configuration of all doors; httpdoor.go those over HTTP
//	tally.go      counters of decisions, faults and closed connections, by reason
//	problem.go    the body of an error
//
// Each door is a package of its own below this one. It imports this package and the library
// of its protocol. Package service builds the doors from the guard section
// of the file.
package gateway
