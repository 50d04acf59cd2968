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
// Where rules count what requests cost, a request is let in first and charged when
// it is done: Handler does so by itself, with what a handler says by [AddCost];
// others call [Guard.Begin] or [Guard.EnterCost], and then [Ticket.End].
package middleware
