// Package onhot answers identical requests of a hot key once, and from a short cache. It knows
// neither rules files nor guards nor hot keys: its caller decides which requests of which key are
// answered so ([Policy] and a tag), and lets each run of the handler past its limit ([Admit]).
//
//	request
//	   │ may it be shared?                 policy.go request.go directives.go
//	   │ what identifies its answer?       key.go encoding.go
//	   ▼
//	 store ── fresh ───────────────────────────────────────────────► reply   store.go reply.go
//	   │ ├─── stale ──► reply, and one leader refreshes it              ▲
//	   │ └─── not for sharing, found in the last 10 s ──► alone         │
//	   ▼                                                                │
//	 flight ── another leads ──► joined: waits for its end ─────────────┤      flight.go cache.go
//	   │                                                                │
//	   │ none: it leads. Admit                                          │
//	   ▼                                                                │
//	 leader, a goroutine of its own ──► handler ──► recorder ──► end ───┘      leader.go recorder.go
//	                                                   │ may it be shared, and for how long? answer.go
//	                                                   └── no: all go alone, at once
//
// reason.go names why a request goes alone, and generation.go has the invalidations, under which
// an answer is stamped when its handler begins.
//
// # What is shared
//
// The leader's handler sees a request that has only what is in the key: scheme, host, target, the
// codings that are accepted, and the headers and cookies that the policy names. So nothing of a
// user can shape an answer that others receive, whatever headers it has. Therefore no user
// receives an answer that is found not to be for sharing, not even the one whose request led. It
// would lack the user's own headers. Each runs the handler with the request as it came. This costs
// one more run for a key, at most every 10 s, or every second while the handler fails. GET and
// HEAD are safe, so another run changes nothing.
//
// An answer is passed on when the handler has returned. Before that it may still panic, be cut
// off or grow beyond the largest size. If its header is not for sharing, the waiting requests go alone
// as soon as it is written or flushed, and the leader's context is cancelled.
//
// A leader always uses GET, and its answer serves HEAD as well, as in nginx and Varnish. The
// answer's own lifetime (RFC 9111) shortens the policy's, including the time in which a stale
// answer is used, and never adds to it. Authorization is never shared, even if the answer is
// public. Requests with a Cookie are shared only if the policy names cookies. A handler that reads
// other headers has to say so by Vary, as for any cache; it answers as if they were absent
// otherwise. Behind a proxy that ends TLS, a policy may have to name header:x-forwarded-proto.
//
// # Adapters
//
// Package sharing calls [Cache.Do] for a guard, and copies [Result.Reply]. How a framework runs its
// handlers in a leader's goroutine is told by middleware.Leader. Compression may be on either
// side. Within the handler, the key has the accepted codings. Around the cache, each use is
// compressed again.
//
// # Libraries
//
// The store is github.com/maypok86/otter/v2. It evicts by weight, and each entry has its own expiry.
// Its goroutine can be left out, and a clean-up after each write keeps the bound. Ristretto may
// drop a write, so a leader's answer may be lost. Bigcache has one lifetime for all entries,
// freecache takes no entry above a 1,024th of its memory, and groupcache neither expires nor
// removes. A list of our own would have to resist scans as well.
//
// Cache-Control is parsed here. github.com/pquerna/cachecontrol allocates, and returns an error for
// a malformed field, where the safe reading has to be chosen anyway. Souin, also in Caddy, is a
// cache for whole sites with storages and an API of its own. golang.org/x/sync/singleflight gives
// a panic to all that wait, and no wait ends before the call.
package onhot
