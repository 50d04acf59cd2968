// Package adaptive sets limits that change: with the capacity of the server, with the time of
// day, and with the age of an instance.
//
//	latencies, CPU ─► estimator ─► Limiter ─► Acquire, Done
//	                                  ▲ SetMax
//	the time ─► Schedule ─────────────┤
//	its age ──► Ramp ─────────────────┴─► quotas of a limiter
//
// The files, in that order: limiter.go [Limiter], which bounds the requests in flight ·
// estimator.go how it finds the limit · cpu.go [CPU], how busy the machine is · schedule.go
// [Schedule], factors by the time of day and week · ramp.go [Ramp], the part of its share that
// a new instance takes.
//
// Nothing here starts a goroutine but CPU.Run, and nothing reads a clock: now and age are
// arguments.
package adaptive
