// Package middleware guards an API: it makes keys of a request's parameters, counts
// them, and holds the keys that are hot to their limits.
//
// A [Guard] depends on no framework: [Guard.Check] decides on a [Request], [Guard.Enter]
// on anything else that has a name and parameters, and [Guard.IsHot] only looks a key up.
// [Guard.Handler] puts the guard around a net/http handler.
//
// For a request with no hot key a check is one pass without allocation, without a lock
// that all share and without network: the rules of its route are looked up, the key's
// bytes are built in a reused buffer and hashed once, the collector counts, and the hot
// set is looked up. A panic of hotparam's own never fails a request: the request passes,
// and is counted.
//
// A key that reaches its threshold on this instance alone is limited here at once, and
// marked local until the aggregator has agreed or not: see [WithoutLocal].
//
// If rules count what requests cost, or have concurrency, a request is let in first, and
// charged when it is done. Handler does so by itself, with what a handler adds by
// [AddCost]; others call [Guard.Begin] or [Guard.EnterCost], and then [Ticket.End].
//
// # The way of a request
//
//	http.go     Handler ─┐
//	check.go    Check ───┼─► checkPlain ─► counted, not hot: it passes      plain.go
//	enter.go    Enter ───┘       │ else
//	                             ▼
//	                          request                                        request.go
//	            which rules?     │ matches, askMatchers        match.go matcher.go
//	            which keys?      │ useKeys, useKey             key.go params.go groups.go except.go
//	            within limits?   │ limitRule, limitKey, …      limit.go hotstate.go
//	            together?        │ askBackend                  exact.go backend.go
//	            its turn?        │ waitForTurn                 wait.go
//	                             ▼
//	                          decision                         verdict.go, grants.go
//	            at its end       Ticket.End                    cost.go meter.go
//
// A request first asks the limits of this process, all of them, even after one has
// denied, so that the longest wait is known. If all allow it asks those that all
// instances share, in one call ([WithBackend]). Then it waits and acquires permits,
// outside of all locks. A request that is refused on the way, or goes away, gives back
// what it had taken.
//
// # The way of a rule
//
//	New, Reload ─► rules.go compile ─► limitspec.go limits ─► route.go routes to rules
//	                                      ▲                      routecache.go
//	              SetInstances ───────────┘ sharing.go
//
// Rules can be replaced while requests are served ([Guard.Reload], reload.go), and so
// can the number of instances that share their limits ([Guard.SetInstances]): both keep
// what was taken.
//
// Keys become hot by the published set ([Guard.HotSet]) and by this instance's own count
// (localhot.go). Where the requests of hot keys come from is sampled (origins.go).
package middleware
