// Package rls is Envoy's rate limit service (envoy.service.ratelimit.v3) in front of a
// [gateway.Decider]: Envoy asks before it passes a request on and, if it is configured to, tells
// when the response is over and what it cost.
//
//	door.go        the server of gRPC: its bounds, health and end
//	calls.go       how many calls there are at a time, and for how long
//	codec.go       messages whose texts are not UTF-8
//	descriptor.go  what a descriptor asks for
//	decide.go      the decision on all descriptors of a call
//	answer.go      the response
//	stats.go       what is counted
//
// A descriptor with the entries method and path is a request, and has the keys that it would
// have in a Go program with the middleware. One with the entry done tells the end of a request.
// Any other has the parameters of the resource that the call's domain names.
package rls
