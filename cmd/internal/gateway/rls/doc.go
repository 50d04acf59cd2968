// Package rls implements Envoy's rate limit service (envoy.service.ratelimit.v3) with a
// [gateway.Decider]. Envoy calls it before it forwards a request and, if configured to, reports
// the end of the response and its cost.
//
//	door.go        the gRPC server: its limits, health and shutdown
//	listener.go    connections, which settle once their peer speaks HTTP/2
//	calls.go       limits on the number and the duration of calls
//	codec.go       messages with strings that are not UTF-8
//	descriptor.go  parsing of descriptors
//	decide.go      the decision on all descriptors of a call
//	answer.go      the response
//
// A descriptor with the entries method and path describes a request and has the same keys as
// with the Go middleware. A descriptor with the entry done reports the end of a request. Any
// other descriptor holds parameters of the resource that the call's domain names.
package rls
