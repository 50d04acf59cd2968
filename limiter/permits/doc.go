// Package permits is a rate limiter like Redisson's RRateLimiter: an object whose rate is
// stored with its state, and whose callers wait in order. For limits by key, with a quota that
// the caller passes, see package limiter.
//
//	TryAcquire, Acquire ─► object: rate, expiry ─► log of takes
//	                          └► queue of waiters, for each client
//
// The files, in that order: permits.go the interface [RateLimiter] and [Rate] · memory.go
// [Memory] · object.go the state that all clients share · queue.go the waiters · log.go the
// takes.
package permits
