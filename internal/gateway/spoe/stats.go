package spoe

import (
	"github.com/hotparam/hotparam/internal/countset"
	"github.com/hotparam/hotparam/internal/gateway"
)

// Counters count what a door has done. N is int64 in [Stats], and [atomic.Int64] while they
// count.
type Counters[N any] struct {
	gateway.ConnCounters[N]
	Healthchecks N // connections that only asked whether the door is there

	Checks     N // requests that were decided on
	Refused    N // of Checks: requests that were refused
	Ended      N // requests whose end was told, and charged
	Lost       N // ends of requests that are not known, or have ended already
	Unheld     N // requests with a cost or a permit whose end nobody will tell
	Incomplete N // messages that do not say what the request is, or name no ticket
	Unknown    N // messages with a name that is not known
	Cut        N // answers that did not fit in a frame

	Invalid    N // connections that ended as a frame was not valid
	TooBig     N // connections that ended as a frame was too big
	Fragmented N // connections that ended as a frame was a fragment
	Handshakes N // connections that ended as the two could not agree
	Slow       N // connections that ended as a frame, or the handshake, took too long, or that of answers
	Panics     N // requests that passed as the door panicked
}

// Stats are the counters of a door since it was made.
type Stats = Counters[int64]

// Stats returns the counters.
func (d *Door) Stats() Stats { return countset.Load[Stats](&d.counters) }
