// Package exact computes the correct result of a replay of an access log by counting every
// request of every key. Hotparam is checked against it, so it shares no code with hotparam. It
// implements logs, canonical keys and windows a second time, in the plainest way, from the
// documentation.
//
//	trace (a file) ─► requests ─► keys ─► Counter ─► LogResult ─► Compare with the output of a replay
//
// Files in the order of the data: trace.go requests · keys.go their keys · rule.go thresholds ·
// kinds.go rules of all kinds · series.go counter.go the counts · needs.go alone.go keys judged
// by their own counts · together.go keys compared with each other · output.go compare.go the
// output of a replay. Shares and multiples are compared in whole numbers of any size.
//
// For rules that make several keys of a request, [Overlap] (overlap.go) checks the listed keys
// against the requests themselves.
//
// Only checks use it.
package exact
