// Package gateways measures what the guard's doors add to a request, for `make bench-gateways`: it
// runs real gateways with the configurations of deploy/gateways, with and without the real
// `hotparam guard`.
//
// A gateway alone, with its own limiter, and with the guard are measured in turns of about a
// second, so that a busy machine changes all of them alike. The figures reported are the ratios to
// the gateway alone in the same turn.
//
//   - catalogue.go lists the variants of each gateway, and edit.go makes the changes to
//     deploy/gateways that they need
//   - site.go starts the guard and what it needs, programs.go the gateways, store.go Redis
//   - requests.go makes the requests, busy.go and cpu_*.go read the processor time of processes
//   - measure.go takes the turns, and figures.go and table.go report the results
package gateways
