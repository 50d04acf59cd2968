// Package exact says what a replay of an access log must come to, by counting
// every request of every key. It is what hotparam is checked against, so it
// shares no code with it: logs, canonical keys and windows are done over again
// here, in the plainest way, from what the documentation says.
//
//	trace (a file) ─► requests ─► keys ─► Counter ─► Result ─► Compare with what a replay said
//
// Files in the order of the data: trace.go requests · keys.go their keys · rule.go when they
// are hot · kinds.go rules of all kinds · series.go counter.go the counts · needs.go alone.go
// keys that are compared with no other · together.go those that are · output.go compare.go
// what a replay said. Shares and multiples are compared in whole numbers of any size.
//
// Of rules by which a request makes several keys, [Overlap] (overlap.go) holds what is listed
// against the requests themselves.
//
// Only tests and the command cmd/verifyreplay use it.
package exact
