// Package status reports the state of a long-running process: health, readiness and metrics over
// HTTP, profiles, and SIGHUP. The aggregator, the guard and the follower of logs use it.
//
//	server.go   health, readiness, metrics · pprof.go profiles · build.go the version
//	hangups.go  SIGHUP
package status
