package breaker

import (
	"sync/atomic"
	"time"
)

// node is the breaker of one node. Its atomic fields are read by requests; the others
// are guarded by the Set's mutex.
type node[T any] struct {
	name    string
	away    atomic.Bool
	doubted atomic.Bool  // a call ended without an answer, and none came since
	silent  atomic.Bool  // such a call waited for the whole time-out
	waiting atomic.Int64 // calls that were admitted while it was silent
	probing atomic.Bool  // held by the goroutine that probes; sample is not written meanwhile

	left     int       // callers in a row who left before an answer
	timedOut time.Time // when the first call in a row had no answer in time; zero if none

	since  time.Time // when it went away, or came back
	next   time.Time // when to probe
	delay  time.Duration
	sample T     // to probe with: what failed
	cause  error // why it is away

	logged time.Time // when its going away was last logged
	told   bool      // whether the current outage was logged
	untold uint64    // outages since then that were not logged
}

// due returns how long until the next probe.
func (n *node[T]) due(now time.Time) time.Duration { return max(0, n.next.Sub(now)) }
