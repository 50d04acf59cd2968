// Package oracle judges a running fleet by its clients' observations: when a request was sent and
// answered, for which key, by which process, with which status. It imports only the standard
// library and shares no code with the fleet.
//
//	requests, faults, samples ─► KeyLimit, Enforcement, Decider, Cap, Memory ─► Violation
//
// The files, in the order of the invariants of docs/DESIGN.md:
//
//	violation.go  Span and Violation: when, which invariant, the numbers
//	limit.go      I1: no window admits more than the largest quota in force allows
//	hot.go        I2: a hot key is limited in time
//	named.go      I2: otherwise the trouble that prevents it is reported, for a bounded time
//	decider.go    I3: Redis decides again in time, and one key's error affects no other key
//	cap.go        I4: rates and sizes stay below their bounds
//	memory.go     I5: which answer reaches which request, and how old it may be
//	stalls.go     the machine's own stalls, which extend deadlines
//
// Each judgement errs on one side only, so that a violation is certain: an event that may have
// happened outside of a window is not counted in it. All times are durations since the beginning
// of the run, on one monotonic clock. Values are not safe for concurrent use unless their comment
// says so.
package oracle
