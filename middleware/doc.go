// Package middleware guards an API: it makes keys from a request's parameters, counts
// them, and limits the requests of hot keys.
//
// A [Guard] depends on no framework: [Guard.Check] decides on a [Request], [Guard.Enter]
// on anything else that has a name and parameters, and [Guard.IsHot] only looks a key up.
// [Guard.Handler] puts the guard around a net/http handler.
//
// A check of a request without a hot key does not allocate, takes no shared lock and makes
// no call. It looks up the rules of the route, builds and hashes the key in a reused
// buffer, counts it, and looks it up in the hot set. A panic in hotparam never fails a
// request: the request passes, and the panic is counted.
//
// If a rule names a parameter of the body, the body is read and held in memory, up to a
// bound, and the handler reads the same bytes. Such rules are decided last: the body of a
// request that other rules deny is not read.
//
// A key that reaches its threshold on this instance alone is limited here at once, until
// the aggregator confirms it or has had time to; see [WithoutLocal].
//
// If rules count what requests cost, or limit concurrency, a request has to be ended, and
// its cost is charged then. Its time is charged every 100 ms while it runs. Handler ends requests
// itself and charges the cost that a handler adds by [AddCost]. Other callers use [Guard.Begin] or
// [Guard.EnterCost], then [Ticket.Start] if they run the handler themselves, and [Ticket.End].
//
// [Limit] makes a guard that only limits, without a collector.
//
// # The path of a request
//
// Files use those below them, and none above. Only new.go and reload.go, which make a guard, know
// all of them.
//
//	http.go     Handler ─┐
//	check.go    Check ───┼─► checkPlain ─► counted, not hot: it passes      plain.go
//	enter.go    Enter ───┘       │ else
//	together.go BeginAll         ▼
//	                         request                                        request.go, what it says: reading.go input.go
//	            which rules?     │ applyRules, matches           apply.go match.go
//	            which values?    │ loadParams, readSource        sources.go, internal/header
//	                             │ readBody                      form.go json.go body.go, internal/bodies
//	            which keys?      │ useKeys, useKey               key.go groups.go
//	            counted?         │ countKey, useControlledKey    countkey.go except.go, controlled.go
//	            within limits?   │ limitRule, limitKey, …        limit.go
//	            asked later?     │ claimLater                    claims.go pending.go
//	            its turn?        ▼ waitForTurn                   wait.go
//	            together?        │ askBackend                    exact.go stock.go waitplace.go
//	                             ▼
//	                         decision                            finish.go, merge.go verdict.go
//	            given back       │ giveBack                      giveback.go
//	            when to retry?   │ backoff                       internal/backoff
//	            what to send?    │ Decision.Answer               answer.go headers.go
//	            or together?     │ Share                         onhot.go leader.go sharer.go
//	            while it runs    Ticket.Start                    serve.go running.go, internal/meter
//	            at its end       Ticket.End                      charge.go metered.go cancel.go ticket.go usage.go cost.go
//
// A request first asks all limits of this process, even after one has denied it, so that the
// longest wait is known. If all allow it, one call asks the limits that all instances share
// ([WithBackend]), which take their tokens together or not at all. The request then waits and
// acquires permits, without holding a lock. A request that is refused, or whose context ends,
// returns all that it had taken.
//
// A request of a hot key whose rule has on_hot is checked in two steps. The first counts it and asks
// no limit. Then what [WithSharer] sets answers it together with identical requests, and only those
// that the handler answers ask their limits, in the second step.
//
// # The path of a rule
//
//	New, Reload ─► compile.go compile ─► specs.go limits ─► route.go routes to rules
//	new.go                                  ▲               concrete.go routecache.go
//	              SetInstances ─────────────┘ instances.go handover.go
//
// The rules that requests use are in rules.go, and their limits in limitspec.go. Rules can be
// replaced while requests are served ([Guard.Reload], reload.go former.go). So can the number of
// instances that share their limits ([Guard.SetInstances]). Both keep the tokens and permits that
// were taken.
//
// # The path of a hot key
//
// Keys become hot by the published set ([Guard.HotSet], hotkeys.go) or by this instance's own count
// (localhot.go), and have their state in hotstate.go. The routes and callers of hot keys' requests
// are sampled (internal/origins). What their limits admit is reported to the fleet ([Guard.Admitted],
// admitted.go). Operators' controls of keys are in control.go.
//
// # Other files
//
// guard.go has the guard, backend.go its backend, and options.go and hooks.go the callers' settings.
// stats.go, counters.go and fulltables.go have the counters, and explain.go and trace.go the
// explanation of one request. limitonly.go has a guard that only limits.
package middleware
