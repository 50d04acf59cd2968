// Package limiter keeps requests within limits, in memory; package redislimiter does
// so on Redis, by the same promises, and package limitertest is the suite that holds
// both to them.
//
// Which of its types is wanted depends on who keeps the time and the keys:
//
//   - [New] makes a [Limiter] of any [Backend], such as a [Memory]: keys are strings, the
//     clock is the backend's, and a caller may wait. Most want this.
//   - [NewBucket] makes a [Bucket] for one thing, [NewKeys] makes [Keys] for many, of any
//     quota. Time is an argument: nothing in them reads a clock, starts a goroutine or waits.
//   - [Bucket] and wordKeys are those two where the state is one word, so that one
//     compare-and-swap is all the locking there is: see gcra.go. The others have a lock
//     for each key. None has one that all keys share.
//
// # Algorithms
//
// A quota's permits are C: its burst, or, in a window, its rate's count. What may be
// admitted in any window of length w at all is what tells the algorithms apart.
//
//   - token_bucket, gcra: at most C + rate × w. A bucket of C tokens starts full, or short
//     of Missing, and earns rate.N in each rate.Per, continuously; nothing is rounded to
//     seconds and no remainder is lost. One word a key. gcra is the same, to be told as
//     redis-cell tells it (redislimiter.CellReply).
//   - leaky_bucket: the same, as a queue of C places that leaks at the rate. Where it
//     shapes, what is admitted has to wait for its turn, [hotparam.Decision].Delay, so
//     that what goes on is never faster than the rate; what finds no place is denied.
//   - fixed_window: exactly C in each window, so up to 2 × C around the end of one. A window
//     begins with the first that is taken in it, or with a natural period of a time
//     zone. A few words a key.
//   - sliding_log: at most C in any window of rate.Per, exactly; each permit is back just
//     that long after it was taken. It remembers each: up to C entries a key.
//   - sliding_blocks: at most C in any window of rate.Per less one block; a permit is back
//     when its block leaves, which may be up to one block early. A number for each block.
//   - token_bucket with a warm-up: Guava's SmoothWarmingUp. One that was idle begins at a
//     ColdFactor-th of its rate, and comes to all of it within WarmUp of being used. At most
//     C + rate × w.
//   - a penalty, with any of them: after a denial the key is locked for so long; nothing
//     prolongs that, and it ends by itself.
//
// One of your own is an [Algorithm] under a name that begins with x_.
//
// # Decisions
//
// A denial consumes nothing (but see Quota.CountDenied). Its RetryAfter is exact: if
// nobody else asks, a retry after RetryAfter passes and one a nanosecond earlier does
// not. A denial whose RetryAfter is 0 can never pass: n was negative or above Limit. An
// n of 0 always passes, unless the key is locked, and takes nothing: it tells the
// state. ResetAfter is how long until all that was taken is back. Decision.Rule is the
// caller's to fill in.
//
// # In advance
//
// A Reserve takes permits before they are there, for a Delay that the caller accepts.
// Reservations are served in the order in which they were made, and before anything
// that is taken afterwards.
//
// # Costs that are known afterwards
//
// A request whose cost shows only when it is done is let in by Peek, while there
// is a permit, and then charged with Charge, which may leave the key in debt. A bucket
// owes at most the tokens of a minute, or a burst if that is more.
//
// # Several limiters for one request
//
// [AllowAll] takes from all or from none. By hand: when another limiter denies the request,
// what this one took is returned with Return, at once and once. What is given back
// after it had been earned again counts as extra: net of what was given back, a window
// admits at most what was said and the permits that were taken before the window and
// given back within it.
//
// # Other quotas
//
// A quota may be replaced while in use: what was taken stays taken, by tokens for
// buckets, by count in windows. Another algorithm starts anew.
//
// # Clocks
//
// A clock that goes back by up to a minute stands still until it has caught up, and
// nothing is granted twice; by more, it is another clock: nothing is granted for the leap,
// and what was taken is back in the time that it would have taken, or up to a minute and
// the deepest debt later where the state is one word.
//
// # Memory
//
// Stores hold at most so many keys. Only a key that is as good as new is ever dropped, so
// nobody gets a fresh burst by being forgotten; it is done by whoever calls, a little at
// a time, so no goroutine is needed. Where all keys are in use a new one passes unlimited,
// with [hotparam.ReasonOpen], and [Stats] counts it.
package limiter
