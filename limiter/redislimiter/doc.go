// Package redislimiter keeps the state of limiters in Redis, so that all instances of a service
// share them. [Store] implements every algorithm of package limiter, and [Cell] uses the
// redis-cell module. It also lends permits to the instances of a fleet ([Store.Settle]).
// [Semaphore], [NewPermits] and [Members] cover semaphores, rate objects and the number of live
// instances.
//
// # Cost
//
// A Do is one round trip and one script, which keeps Redis busy for ten to thirty microseconds.
// DoAll asks for any number of keys of any limits in one round trip. A single server runs one
// script for all of them. A cluster runs one per slot, in one pipeline to each master, with all
// masters in parallel. Config.Tag places keys that are asked for together in one slot. An
// unlimited quota makes no call. Requests that are Together take all or nothing within each script.
//
// Scripts are run by EVALSHA. If a server does not know a script, because it is new, was flushed
// or has been failed over to, the script is sent by EVAL in a second round trip, also in a
// pipeline. No call is repeated for any other reason, not even by a client that retries: a call
// that timed out may have been executed.
//
// # Time
//
// All times are whole microseconds of Redis's own clock, so the clocks of instances do not
// matter. Within one state, time never runs backwards. If the clock is set back by up to a
// minute, as it may be after a failover, the state's time stands still until the clock has caught
// up. If it is set back further, permits stay taken for as long as they would have been. Waits
// are rounded up to the microsecond: a retry passes after RetryAfter, and not a microsecond
// before.
//
// # Numbers
//
// Buckets count in whole units. The rate of N per Per is reduced to a fraction: the units earned
// per microsecond over the units per permit. Nothing is rounded at any rate from 10,000,000 a
// second to one in years, unless the burst exceeds the 2^53 units that Lua counts exactly. A
// permit then costs up to two in a million too much. A quota that cannot be expressed even so is
// refused. Only warm-up uses fractions.
//
// Logs and blocks are searched by bisection, so a call takes no longer for 100,000 permits than
// for ten. Only a Return, or a take ahead of reservations, rewrites the newer entries.
//
// # Keys
//
// Each key of a limit is one Redis string named
//
//	hotparam:{namespace/hash}:limit
//
// with 128 bits of a cryptographic hash, so names and keys may be any bytes and a decision
// touches one slot. It expires one minute, plus at most Config.Jitter, after its state has become
// that of a new key. A denial writes nothing, unless denials count or start a penalty, or it is a
// quota's first on a key that has other quotas. A log of N permits takes at most 32 N bytes, and
// as many for reservations. Other states take less than 200 bytes, plus 16 per block of a window.
// Permits that instances hold of a bucket are in a hash next to it, :limit:leases, with some 100
// bytes for each instance. It expires after a minute.
//
// Quotas of several algorithms on one key have separate states. The first is stored under that
// name, each other one under the name and its letter, such as :limit:s. Token bucket and gcra
// count as one algorithm, and so do all fixed windows. A bucket that warms up counts as another
// algorithm than a bucket that does not. A penalty locks the key for all of them, in :limit:lock.
//
// # Several quotas of one key
//
// The quota travels with each call and the state belongs to none. So instances of several
// versions may ask for one key at once, and a quota may change at any time. In any window the key
// is admitted at most as much as the largest of its quotas allows, or the sum over different
// algorithms. Permits taken, reserved or owed carry over, and a Return goes to the state from
// which its permits were taken.
//
// A bucket keeps the number of permits it lacks, even beyond a smaller burst. Reservations keep
// their promised times, so until the last of them the old rate is in force. If three or more
// rates reserve alternately, only the slowest and the one before it are kept.
//
// Windows keep as much as the longest quota in use needs, and each quota counts the permits
// within its own window. At most four windows are kept. Beyond that, the two that were asked for
// longest ago become one that is as long as either and no finer. Permits counted before a quota
// appeared may count for it too long, but never too short: by up to one block, or until the other
// fixed window ends.
//
// # When Redis is unavailable
//
// A call takes at most until its context's deadline, or Config.Timeout without one, and returns
// an error. [limiter.NewFailover] then decides about requests, and asks Redis again only once a
// probe has succeeded. A failover of Redis may lose the latest takes: at most a burst plus the
// rate × the replication lag pass twice.
//
// An error reply is a [limiter.OpError] and concerns its key alone. The exceptions are the errors
// that a server returns for every command: LOADING, READONLY, OOM, MISCONF, NOREPLICAS,
// MASTERDOWN, BUSY, NOAUTH, NOPERM and CLUSTERDOWN. Store and Cell are [limiter.Clustered]: they
// report which master holds a key, and probe it by a write.
//
// # The client
//
// The client must have ContextTimeoutEnabled, or an unavailable Redis costs seconds; New refuses
// a client without it where it can check. MaxRetries should be -1, since retries only add up on
// the request path; calls of this package are not repeated in any case. A cluster client must
// read from masters. It needs no right to COMMAND if DisableRoutingPolicies is set.
//
// # Rights
//
// A Store in the namespace shop needs at least these rights, on every server:
//
//	ACL SETUSER hotparam-limiter on >PASSWORD ~hotparam:{shop/* +evalsha +eval +time +get +set +del +getrange +setrange +pexpire
//
// Settle also needs +hmget +hset +hlen +hgetall +hdel, and a cluster +cluster|slots. Cell needs
// +cl.throttle instead of the others.
//
// Redis 5 or later is required. The scripts read the time, so they have Redis replicate
// their effects.
package redislimiter
