package spoe

import (
	"github.com/hotparam/hotparam/internal/countset"
	"github.com/hotparam/hotparam/internal/gateway"
)

// Counters count the messages and connections of a door. N is int64 in [Stats] and
// [atomic.Int64] in a running door.
type Counters[N any] struct {
	gateway.ConnCounters[N]
	Healthchecks N // connections that were health checks

	Checks     N // requests decided
	Refused    N // of Checks: requests refused
	Ended      N // requests whose end was reported and charged
	Lost       N // reports for requests that are unknown or have already ended
	Unheld     N // requests with a cost or a permit whose end will not be reported
	Incomplete N // messages that lack the request's method or URI, or the ticket
	Unknown    N // messages with an unknown name
	Cut        N // responses that did not fit in a frame

	Invalid    N // NOTIFY frames that were invalid, and connections ended by any other invalid frame
	TooBig     N // connections ended because a frame was too big
	Fragmented N // connections ended because a frame was a fragment
	Handshakes N // connections ended because the handshake failed
	Slow       N // connections ended because a frame, the handshake or a write took too long
	Panics     N // requests that passed because the door panicked
}

// Stats are the counters of a door since it was created.
type Stats = Counters[int64]

// Stats returns the counters.
func (d *Door) Stats() Stats { return countset.Load[Stats](&d.counters) }
