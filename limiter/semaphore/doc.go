// Package semaphore bounds how many requests are in flight at a time, for each of many keys:
// slow calls, connections, workers. Requests beyond the permits wait in a bounded queue, with a
// deadline, or are denied at once.
//
//	Acquire ─► stripe ─► key: permits held ─► Lease ─► Release
//	                      └► queue, by class ──┘  ▲       │
//	                                              └───────┘ handed over
//
// The files, in that order: semaphore.go the interface · memory.go [Memory] and its counters ·
// stripe.go the keys under one lock · key.go the permits held of one key · queue.go the
// waiters · slot.go the reusable place of a lease · lease.go [Lease], the handle of its holder.
package semaphore
