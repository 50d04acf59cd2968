// Package permits is a rate limiter like Redisson's RRateLimiter: an object whose rate is
// stored with its state, and whose callers wait in order. For limits by key, with a quota that
// the caller passes, see package limiter.
//
//	TryAcquire, Acquire ─► line: waiters ─► object: rate, expiry, takes of each client
//
// The files, in that order: permits.go the interface [RateLimiter] and [Rate] · memory.go
// [New] · object.go the state that all clients share. The waiters are a line of package
// limiter/internal/permitline.
package permits
