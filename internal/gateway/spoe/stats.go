package spoe

import "sync/atomic"

// Stats are a door's counters since it was made.
type Stats struct {
	Connections  int64 // that are open now
	Accepted     int64 // connections that were opened
	Full         int64 // connections that were closed at once, as there were too many
	Displaced    int64 // connections that said nothing, and made room for another
	Denied       int64 // connections that were closed at once, as their address may not connect
	Healthchecks int64 // connections that only asked whether the door is there

	Checks     int64 // requests that were decided on
	Refused    int64 // of Checks: requests that were refused
	Ended      int64 // requests whose end was told, and charged
	Lost       int64 // ends of requests that are not known, or have ended already
	Unheld     int64 // requests with a cost or a permit whose end nobody will tell
	Incomplete int64 // messages that do not say what the request is, or name no ticket
	Unknown    int64 // messages with a name that is not known
	Cut        int64 // answers that did not fit in a frame

	Invalid    int64 // connections that ended as a frame was not valid
	TooBig     int64 // connections that ended as a frame was too big
	Fragmented int64 // connections that ended as a frame was a fragment
	Handshakes int64 // connections that ended as the two could not agree
	Slow       int64 // connections that ended as a frame, the handshake, or reading answers took too long
	Panics     int64 // requests that passed as the door panicked
}

// counters are what Stats are made of.
type counters struct {
	healthchecks                                          atomic.Int64
	checks, refused, ended, lost, unheld                  atomic.Int64
	incomplete, unknownMessages, cut                      atomic.Int64
	invalid, tooBig, fragmented, handshakes, slow, panics atomic.Int64
}

// Stats returns the counters.
func (d *Door) Stats() Stats {
	c, a := &d.counters, d.admission.Stats()
	return Stats{
		Connections: a.Connections, Accepted: a.Accepted, Full: a.Full, Displaced: a.Displaced, Denied: a.Strangers, Healthchecks: c.healthchecks.Load(),
		Checks: c.checks.Load(), Refused: c.refused.Load(), Ended: c.ended.Load(), Lost: c.lost.Load(), Unheld: c.unheld.Load(),
		Incomplete: c.incomplete.Load(), Unknown: c.unknownMessages.Load(), Cut: c.cut.Load(),
		Invalid: c.invalid.Load(), TooBig: c.tooBig.Load(), Fragmented: c.fragmented.Load(), Handshakes: c.handshakes.Load(), Slow: c.slow.Load(), Panics: c.panics.Load(),
	}
}
