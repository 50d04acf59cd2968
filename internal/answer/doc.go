// Package answer makes the response to a refused request: its headers, and a problem body (RFC
// 9457). A flood consists of refusals, so a response is made in a pooled buffer, and all of its
// headers together take two allocations.
//
//	buffer.go    headers and body of a response
//	problem.go   contents of a refusal
package answer
