package breaker

import (
	"sync/atomic"
	"time"
)

// nodeBreaker is the breaker of one node. Requests read its atomic fields; the others are guarded
// by the Set's mutex.
type nodeBreaker[T any] struct {
	name        string
	unavailable atomic.Bool
	doubted     atomic.Bool  // a call ended without an answer, and no call was answered since
	silent      atomic.Bool  // an unanswered call waited for the whole time-out
	waiting     atomic.Int64 // calls that were admitted while the node was silent
	probing     atomic.Bool  // held by the probing goroutine; sample is not written while it is held

	// Times in ns since the Set was made.
	answered atomic.Int64 // beginning of the latest call that was answered
	until    atomic.Int64 // end of the time after an outage in which others may be without the node

	left     int       // number of callers in a row who left before an answer
	timedOut time.Time // first of the consecutive time-outs; zero if there is none

	since  time.Time // start of the current outage, or end of the last one
	next   time.Time // time of the next probe
	delay  time.Duration
	sample T     // argument of Probe, from the failed call
	cause  error // last error of a call or probe

	logged   time.Time // time of the last log line about an outage
	isLogged bool      // whether the current outage was logged
	unlogged uint64    // outages that were not logged since then
}

// due returns the time until the next probe.
func (n *nodeBreaker[T]) due(now time.Time) time.Duration { return max(0, n.next.Sub(now)) }
