// Package middleware guards an API: it makes keys of a request's parameters,
// counts them, and holds to their limits the keys that are hot.
//
// A [Guard] is in no framework's terms: [Guard.Check] decides on a [Request],
// [Guard.Enter] on anything else that has a name and parameters, and
// [Guard.IsHot] only tells. [Guard.Handler] puts it around a net/http handler.
//
// For a request with no hot key a check is one pass without allocation, without
// a lock that all share and without network: the rules of its route are looked
// up, the key's bytes are built in a reused buffer and hashed once, the
// collector counts, and the hot set says no. A panic inside never fails a
// request: it passes, and is counted.
//
// A key that reaches its threshold on this instance alone is limited here at once,
// marked local until the aggregator has agreed or not: see [WithoutLocal].
//
// Where rules count what requests cost, or have concurrency, a request is let in
// first, and charged when it is done: Handler does so by itself, with what a handler
// says by [AddCost]; others call [Guard.Begin] or [Guard.EnterCost], and then
// [Ticket.End].
//
// # The way of a request
//
// It first asks the limits of this process (limit.go), all of them, even after one has
// denied, so that the longest wait can be told. If all allow it asks those that all
// instances share, in one call (exact.go, [WithBackend]). What is then left to do,
// waiting and permits, is done outside of all locks and pooled memory (passage.go).
// Whoever is refused on the way, or goes away, gives back what it had taken.
//
// Rules can be replaced while requests are served ([Guard.Reload]), and so can the
// number of instances that share their limits ([Guard.SetInstances]): both keep what
// was taken.
package middleware
