// Package gateways measures what the guard's doors add to a request, for `make bench-gateways`:
// real gateways by the configurations of deploy/gateways, the real `hotparam guard` beside
// them, and the same gateways without it.
//
// A gateway alone, with its own limiter, and with the guard are measured in turns of about a
// second, so that a machine that is busy changes all of them alike. What is reported are the
// ratios to the gateway alone within a turn.
//
//   - catalogue.go says what is measured of each gateway, and edit.go how deploy/gateways is
//     changed for that
//   - site.go starts the guard, and what it needs
//   - load.go sends requests, cpu_linux.go reads the processor time of processes
//   - measure.go takes the turns, figures.go and table.go say what came of them
package gateways
