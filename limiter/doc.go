// Package limiter holds keys to quotas, in memory or on any backend. Package redislimiter is
// a backend on Redis with the same promises; package limitertest is the suite that holds
// every backend to them.
//
// [NewLocal] limits one thing in this process, in one line:
//
//	l := limiter.NewLocal(10, 20) // 10 a second, 20 at once
//	if !l.Allow() { … }
//
// [New] limits each of many keys, on any [Backend]. Most want this:
//
//	l, err := limiter.New(backend, "logins", limiter.PerSecond(10))
//	d, err := l.Allow(ctx, user)
//
// [NewBucket] and [NewKeys] are for programs that have the time at hand, as package
// middleware has: time is an argument, and nothing in them reads a clock, starts a goroutine
// or waits.
//
//	Limiter: Allow, Wait, Reserve, … ─► Op ─► Backend ─► Result
//	                                          │ Cached, Deferred, Failover: around another
//	                                          └ Memory ─► State, one for each key
//	Bucket, Keys ──────────────────────────────────────►  or one word, without a lock
//
// The files, in that order. For callers: limiter.go per.go wait.go reservation.go denied.go,
// allowall.go several limiters at once, local.go. The seam: backend.go batch.go clustered.go
// operror.go path.go. Around a backend: cached.go, deferred*.go, failover*.go with share.go
// and sharecache.go. Stores: memory.go snapshot.go restore.go, bucket*.go, keys*.go on table.go.
// Arithmetic: algorithm.go which it is, family.go several quotas of one key; gcra.go line.go
// atomicline.go reckoning.go words.go of one word; window.go view.go slotlog.go windowstate.go with
// fixedwindow.go slidinglog.go slidingblocks.go; warmup.go, penalty.go.
//
// Other rooms: semaphore bounds what is in flight, adaptive sets limits that move, permits is
// an object with a rate as Redisson has it.
//
// # Algorithms
//
// A quota's permits are C: its burst, or, in a window, its rate's count. What may be
// admitted in any window of length w at all is what tells the algorithms apart.
//
//   - token_bucket, gcra: at most C + rate × w. A bucket of C tokens starts full, or short
//     of Missing, and earns rate.N in each rate.Per, continuously; nothing is rounded to
//     seconds and no remainder is lost. One word a key. gcra is the same, for replies
//     like those of redis-cell (redislimiter.CellReply).
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
// n of 0 always passes, unless the key is locked, and takes nothing: it reads the
// state. ResetAfter is how long until all that was taken is back. The Rule of a decision
// is the name of the limiter, and empty without one. Where Remaining is below a share of
// Limit, a key is near its limit; the guard of package middleware has a hook for that.
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
// Stores hold at most so many keys. Only a key in its initial state is ever dropped, so
// no key gets a fresh burst by being dropped. Each call drops a little, so no goroutine is
// needed. Where all keys are in use a new one passes unlimited,
// with [hotparam.ReasonOpen], and [Stats] counts it.
package limiter
