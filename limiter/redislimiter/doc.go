// Package redislimiter keeps limiters in Redis, so that all who use the same one share
// them: [Store] has every algorithm of package limiter, [Cell] asks the module
// redis-cell, and there are semaphores, permits and a count of who is alive.
//
// # What it costs
//
// A decision is one round trip and one script, which is as much as it needs to be: a
// Do costs Redis some ten to thirty microseconds. DoAll asks for any number of keys, of
// any limits, in one round trip: one script for all on a single server; in a cluster
// one for each slot, in one pipeline to each master, all at the same time. Config.Tag
// puts keys that are asked for together into one slot. An unlimited quota asks nobody.
//
// Scripts are run by EVALSHA. A server that does not know one, as it is new, was
// flushed, or took another's place, gets it by EVAL in a second round trip, also where
// calls are pipelined. Nothing else makes a call go twice: what timed out was perhaps
// done, so no call is ever repeated, not even by a client that repeats others.
//
// # Time
//
// All times are whole microseconds of Redis's own clock, so the clocks of instances do
// not matter. Within one state time never goes back: when the clock does, by up to a
// minute, as it may after a failover, time stands still until it has caught up; when it
// does by more, what was taken stays taken for as long as it would have been.
// Waits are rounded up to the microsecond: after RetryAfter it passes, and a microsecond
// earlier it would not have.
//
// # Numbers
//
// Buckets count in whole units: a rate of N per Per is the reduced fraction N / Per, so
// many units earned in a microsecond, of which a permit costs so many. Nothing is
// rounded at any rate from 10,000,000 a second to one in years, unless a burst is beyond
// what Lua counts exactly, 2^53 units; then a permit costs up to two in a million too
// much. A quota that cannot even be told so is refused. A warm-up alone reckons in
// fractions. A log or the blocks of a window are found by bisection: a call does not
// take longer for 100,000 permits than for ten. Only to give back permits, or to take
// some in spite of reservations, are the entries that are newer than those written
// anew.
//
// # Keys
//
// A key of a limit is one key in Redis, a string called
//
//	hotparam:{namespace/hash}:limit
//
// with 128 bits of a hash that nobody can make collide, so that names and keys may be
// any bytes and one decision is in one slot. It goes a minute after the state is
// as new, and Config.Jitter later at most, never sooner; a denial writes nothing, unless
// denials count, start a penalty, or are the first of a quota beside others. A log of N
// permits takes at most 32 N bytes, and as many for reservations; all else under 200, and
// 16 for each block of a window.
//
// Quotas of several algorithms for one key have states side by side: the first is under
// that name, another under the name and its letter, such as :limit:s. (Token bucket and
// gcra are one, and so are calendars and other fixed windows; what warms up is another
// than what does not.) A penalty locks the key for all of them, by :limit:lock.
//
// # Several quotas of one key
//
// The quota travels with each call; the state is no quota's. So instances of several
// versions may ask for one key at once, and a quota may change at any time: in any window
// the key is admitted what the largest of its quotas allows, of different algorithms
// their sum. What was taken, reserved or owed carries over, and a Return goes to where it
// was taken.
//
// A bucket is short of as many permits as it was, also beyond a smaller burst. What is
// reserved is used when it was promised, so up to then the rate is the one by which it
// was; where three rates or more reserve by turns, this is kept for the slowest and the
// one before. Windows keep what the longest needs that still asks, and each quota counts
// what is in its own: at most four of them, beyond that two count as one that is as long
// as either and no finer. What was counted before a quota came counts for it rather too
// long than too short: by a block of others, or up to the end of their fixed window.
//
// # When Redis is away
//
// A call costs at most its context's deadline, or Config.Timeout where there is none,
// and is an error: nothing is known. [limiter.NewFailover] decides what then becomes of
// requests, and asks no more until Redis is back. A failover of Redis may lose what was
// taken last: at most a burst and the rate × the lag of replication pass twice.
//
// An error that a server answers is a [limiter.OpError], of that key alone, unless it is
// one that the server gives to all: LOADING, READONLY, OOM, MISCONF, NOREPLICAS,
// MASTERDOWN, BUSY, NOAUTH, NOPERM, or that the cluster is down. Store and Cell tell the
// master that has a key, and probe it by a write: they are [limiter.Clustered].
//
// # The client
//
// The client must have ContextTimeoutEnabled, else a Redis that is away costs seconds:
// New refuses it where it can see that. MaxRetries of -1 is advised, as retries on the
// request path only add up; calls of this package are not repeated in any case. On a
// cluster the client must read from masters, and DisableRoutingPolicies spares it the
// right to COMMAND.
//
// # Rights
//
// The least rights of a Store in the namespace shop, on every server:
//
//	ACL SETUSER hotparam-limiter on >PASSWORD ~hotparam:{shop/* +evalsha +eval +time +get +set +del +getrange +setrange +pexpire
//
// A cluster needs +cluster|slots besides, and Cell +cl.throttle in place of the others.
//
// Redis 5 and later will do; with effects replication, which is what scripts that ask
// for the time need, before 7 too.
package redislimiter
