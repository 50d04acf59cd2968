// Package oracle judges a running fleet by what its clients saw: when a request was
// sent and answered, for which key, by which process, with which status. It imports
// the standard library alone and shares no code with what it judges.
//
//	requests, faults, samples ─► Limit, Hot, Office, Cap ─► Violation
//
// The files, in the order of the invariants:
//
//	violation.go  Span and Violation: when, which invariant, the numbers
//	limit.go      I1: no window admits more than the largest quota in force allows
//	hot.go        I2: a hot key is limited in time
//	named.go      or what keeps it from that is named, for a bounded time
//	office.go     I3: Redis decides again in time, and one key's error stays its own
//	cap.go        I4: rates and sizes stay below their bounds
//	stalls.go     the machine's own stalls, by which deadlines are extended
//
// Each judgement errs on one side only: what may have happened outside of a window
// does not count against it, so a violation is certain. All times are durations since
// the beginning of the run, on one monotonic clock. Values are not safe for concurrent
// use unless their comment says so.
package oracle
