// Package middleware guards an API: it makes keys of a request's parameters, counts
// them, and limits the requests of hot keys.
//
// A [Guard] depends on no framework: [Guard.Check] decides on a [Request], [Guard.Enter]
// on anything else that has a name and parameters, and [Guard.IsHot] only looks a key up.
// [Guard.Handler] puts the guard around a net/http handler.
//
// A check of a request without a hot key does not allocate, takes no shared lock and makes
// no call: it looks up the rules of the route, builds and hashes the key in a reused
// buffer, counts it, and looks it up in the hot set. A panic in hotparam never fails a
// request: the request passes, and the panic is counted.
//
// If a rule names a parameter of the body, the body is read and held in memory, up to a
// bound, and the handler reads the same bytes. Such rules are decided last: a request that
// the others deny is not read.
//
// A key that reaches its threshold on this instance alone is limited here at once, until
// the aggregator confirms it or has had time to; see [WithoutLocal].
//
// If rules count what requests cost, or limit concurrency, a request has to be ended: its
// cost is charged then. Handler does so itself, with the cost that a handler adds by
// [AddCost]. Other callers use [Guard.Begin] or [Guard.EnterCost], and then [Ticket.End].
//
// [Limit] makes a guard that only limits, without a collector (limiting.go).
//
// # The way of a request
//
//	http.go     Handler ─┐
//	check.go    Check ───┼─► checkPlain ─► counted, not hot: it passes      plain.go
//	enter.go    Enter ───┘       │ else
//	                             ▼
//	                          request                                        request.go
//	            which rules?     │ matches, askMatchers        match.go matcher.go
//	            which keys?      │ useKeys, useKey             key.go groups.go except.go
//	            of what?         │ loadParams, readSources     params.go sources.go cookies.go clientaddr.go forwarded.go
//	                             │ readBody                    body.go heldbody.go form.go json.go
//	            within limits?   │ limitRule, limitKey, …      limit.go hotstate.go
//	            together?        │ askBackend                  exact.go backend.go
//	            its turn?        │ waitForTurn                 wait.go turn.go
//	                             ▼
//	                          decision                         verdict.go, grants.go
//	            when to retry?   │ backoff                       backoff.go
//	            what to send?    │ Decision.Answer               answer.go headers.go
//	            at its end       Ticket.End                    cost.go meter.go
//
// A request first asks all limits of this process, even after one has denied it, so that
// the longest wait is known. If all allow it, it asks those that all instances share, in
// one call ([WithBackend]), in which they take together or not at all. It then waits and acquires permits, without holding a lock. A
// request that is refused, or whose context ends, gives back what it had taken.
//
// # The way of a rule
//
//	New, Reload ─► rules.go compile ─► limitspec.go limits ─► route.go routes to rules
//	                                      ▲                      routecache.go concrete.go
//	              SetInstances ───────────┘ sharing.go handover.go
//
// Rules can be replaced while requests are served ([Guard.Reload], reload.go former.go), and so
// can the number of instances that share their limits ([Guard.SetInstances]): both keep
// what was taken.
//
// Keys become hot by the published set ([Guard.HotSet]) or by this instance's own count
// (localhot.go). The routes and callers of hot keys' requests are sampled (origins.go).
// Operators' words about keys are in control.go.
//
// # Around it
//
// guard.go has the guard, options.go and hooks.go what callers set, client.go who a client is,
// redact.go values that are withheld, together.go several requests at once, rulestats.go and
// fulltables.go what was counted, trace.go and explain.go what is made of one request.
package middleware
