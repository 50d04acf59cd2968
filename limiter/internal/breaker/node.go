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
	left    atomic.Int64 // callers in a row who left before an answer
	probing atomic.Bool  // held by the goroutine that probes; sample is not written meanwhile

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
