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
	probing atomic.Bool  // held by who probes; sample is not written meanwhile

	since  time.Time // when it went away, or came back
	next   time.Time // when to probe
	delay  time.Duration
	sample T     // to probe with: what failed
	cause  error // why it is away

	logged time.Time // when a line last said that it went away
	told   bool      // a line says that it is away now
	untold uint64    // outages since then of which no line speaks
}

// due returns how long until the next probe.
func (n *node[T]) due(now time.Time) time.Duration { return max(0, n.next.Sub(now)) }
