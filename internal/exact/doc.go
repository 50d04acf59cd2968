// Package exact says what a replay of an access log must come to, by counting
// every request of every key. It is what hotparam is checked against, so it
// shares no code with it: logs, canonical keys and windows are done over again
// here, in the plainest way, from what the documentation says.
//
//	trace (a file) ─► requests ─► keys ─► Counter ─► Result ─► Compare with what a replay said
//
// Of rules by which a request makes several keys, [Overlap] holds what is listed
// against the requests themselves.
//
// Only tests and the command cmd/verifyreplay use it.
package exact
