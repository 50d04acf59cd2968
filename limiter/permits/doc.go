// Package permits is a rate limiter in the manner of Redisson's RRateLimiter: an object
// whose rate is kept with its state, and whose callers wait in order. For a limit by
// keys, with a quota that the caller has, see package limiter.
//
//	TryAcquire, Acquire ─► object: rate, expiry ─► log of what was taken
//	                          └► queue of those who wait, for each client
//
// The files, in that order: permits.go the interface [RateLimiter] and [Rate] · memory.go
// [Memory] · object.go what all clients share · queue.go who waits · log.go what was
// taken.
package permits
