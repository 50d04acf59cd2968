// Package limiter limits keys by quotas, in memory or on any backend. Package redislimiter is a
// backend on Redis with the same promises. Package limitertest is the suite that tests backends
// for them.
//
// [NewLocal] limits one thing in this process, in one line:
//
//	l := limiter.NewLocal(10, 20) // 10 a second, 20 at once
//	if !l.Allow() { … }
//
// [New] limits each of many keys, on any [Backend]. Most callers want this:
//
//	l, err := limiter.New(backend, "logins", limiter.PerSecond(10))
//	d, err := l.Allow(ctx, user)
//
// [NewBucket] and [NewKeys] are for callers that have already read the clock, such as package
// middleware. The time is an argument of their methods, and nothing in them reads a clock,
// starts a goroutine or waits.
//
//	Limiter: Allow, Wait, Reserve, … ─► Op ─► Backend ─► Result
//	                                          │ Cached, Failover: around another
//	                                          └ Memory ─► State, one for each key
//	Bucket, Keys ──────────────────────────────────────► State, its word mostly without a lock
//
// The files, in that order. For callers: limiter.go limiter_memory.go per.go wait.go with
// waitlines.go waitline.go waitask.go for those that wait, reservation.go denied.go,
// allowall.go several limiters at once, local.go. The seam: backend.go batch.go together.go
// clustered.go operror.go path.go. Around a backend: cached*.go, failover*.go with ledger.go,
// share.go and sharecache.go; owe.go opening.go for the instances that share a quota. Stores:
// memory.go snapshot.go restore.go, bucket.go, keys.go, on table.go node.go
// states*.go, with debts.go sketch.go for what evicted keys owe. Arithmetic: algorithm.go
// chooses it, family.go several quotas of one key; tokenbucket.go takeline.go words.go states of one
// word; window.go view.go slotlog.go windowstate.go with fixedwindow.go slidinglog.go
// slidingblocks.go; warmup.go, penalty.go.
//
// Packages below: fleet holds one limit over all instances without a call for each request,
// semaphore bounds requests in flight, adaptive sets limits that change, and permits is an object
// with a rate, like Redisson's. internal/breaker decides when a remote backend counts as
// unavailable.
//
// # Algorithms
//
// C is a quota's permits: its burst or, for a window, its rate's count. The algorithms differ
// in how much they admit in any window of length w.
//
//   - token_bucket, gcra: at most C + rate × w. A bucket of C tokens starts full, or short of
//     Missing tokens. It earns rate.N in each rate.Per, continuously: there is no rounding to
//     seconds, and no remainder is lost. A key takes one word. gcra is the same, for replies
//     like those of redis-cell (redislimiter.CellReply).
//   - leaky_bucket: the same bound, as a queue of C places that leaks at the rate. With Shape, an
//     admitted request waits for its turn, [rules.Decision].Delay, so requests never proceed
//     faster than the rate. A request that finds no place is denied.
//   - fixed_window: exactly C in each window, so up to 2 × C around the end of one. A window
//     begins with its first take, or with a natural period of a time zone. A key takes a few
//     words.
//   - sliding_log: at most C in any window of rate.Per, exactly. Each permit returns rate.Per
//     after it was taken. A key takes up to C entries.
//   - sliding_blocks: at most C in any window of rate.Per less one block. A permit returns
//     when its block leaves, up to one block early. A key takes a number for each block.
//   - token_bucket with a warm-up: Guava's SmoothWarmingUp. After idling it begins at
//     1/ColdFactor of its rate, and reaches the full rate within WarmUp of use. At most
//     C + rate × w.
//   - a penalty, with any of them: a denial locks the key for that long. Nothing extends the
//     lock, and it ends on its own.
//
// An [Algorithm] of your own has a name that begins with x_.
//
// # Decisions
//
// A denial consumes nothing, unless Quota.CountDenied is set. Its RetryAfter is exact: if no
// one else asks, a retry after RetryAfter passes and one a nanosecond earlier does not. For a
// locked key it is the end of the lock or the time when the ask's permits are available,
// whichever is later. A denial with a RetryAfter of 0 can never pass: n was negative or above
// Limit. An n of 0 takes nothing and always passes, unless the key is locked: it reads the
// state. ResetAfter is the time until all permits are back. The Rule of a decision is the name
// of the limiter, or empty without one.
//
// # Reservations
//
// A Reserve takes permits before they are available, for a Delay that the caller accepts.
// Reservations are served in the order in which they were made, and before later takes.
//
// # Waiting
//
// The callers of Wait of one key form a line in their process: see [WaitLines]. The line owns
// the reserved permits, so the place of a caller that gives up passes to the next one, and no
// permit is lost while anyone waits. Within a process callers are served in order; processes
// take turns. A caller whose turn would come after its deadline is refused at once. A line has
// one timer. A line of a remote backend asks ahead, on goroutines that last for one call each.
// A process that crashes loses what its lines have asked for, at most 256 permits a key.
//
// # Costs that are known afterwards
//
// A request whose cost is known only at its end is admitted by Peek, while there is a permit,
// and then charged by Charge, which may leave the key in debt. A bucket owes at most the tokens
// of a minute, or a burst if that is more.
//
// # Several limiters for one request
//
// [AllowAll] takes from all limiters or from none. On one [Memory], or one server of Redis, a
// request that one limiter denies takes nothing of the others, not even for an instant. The
// asks of a DoAll have the same promise with [Request].Together. On other backends, when one
// limiter denies the request, Return what another one granted, at once and only once. Returns
// in any order refill a bucket, less at most the tokens that it earned between the take and its
// return. Permits that are returned later than that count as extra: net of returns, a window
// admits at most the bound above plus the permits taken before the window and returned within
// it.
//
// # Other quotas
//
// A quota may be replaced while in use. Permits that were taken stay taken: as tokens in
// buckets, and by count in windows. Another algorithm starts from its initial state.
// Alternating fixed windows of several lengths or calendars admit at most their sum, since each
// has borders of its own.
//
// # Clocks
//
// If a clock goes back by up to a minute, time does not advance until it has caught up, so no
// permit is granted twice. If it goes back further, it is another clock. No permit is granted
// for the jump, and permits return in the time that they would have taken. States of one word
// take up to a second longer.
//
// # Memory
//
// Stores hold a bounded number of keys. Only a key in its initial state is ever dropped, so no
// key gets a fresh burst by being dropped. Each call drops a little, so no goroutine is needed.
// If all keys are in use, a new one takes the place of another. A sketch keeps the evicted
// key's debt, which that key takes along when it returns. So a full store is stricter, by a
// probability that docs/LIMITS.md states, and never admits more.
package limiter
