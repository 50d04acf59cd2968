// Package doctor diagnoses a fleet from its state in Redis, and describes how to fix the problems.
// It checks the connection to Redis and the user's rights. It then checks whether an aggregator
// publishes and receives the counts of all instances, whether rules and clocks agree, and whether
// anything is lost, full or about to expire, and whether the history is written.
//
//	Config ─► Examine ─► redis.go ─► rights.go ─► publisher.go ─► members.go ─► controls.go ─► history.go ─► []Finding
//	                                                 memory.go       losses.go                                 finding.go
//
// To test the rights to write, it sets and deletes keys of its own, hotparam:{namespace}:doctor and
// hotparam-history:{namespace}:doctor.
// It changes nothing else.
package doctor
