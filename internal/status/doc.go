// Package status is what a process that goes on shows of itself: health, readiness and metrics
// over HTTP, profiles, and its signals. The aggregator, the guard and the follower of logs use it.
//
//	server.go   health, readiness, metrics · pprof.go profiles · build.go the version
//	rules.go    the rules file, as all of them follow one · hangups.go SIGHUP
package status
