// Package decode turns packets of StatsD lines into counts, and reports what was lost on
// the way.
//
//	packet ─► believed? ─► meta line ─► sender ─► lines ─► accounts ─► Handler
//	          Trust        wire.Meta    clock, losses      what was lost
//
// A [Decoder] reads what one source brings: packets, Kafka records, or the lines of
// connections, each a [Stream]. It gives a [Handler] the counts, placed in time by our clock,
// and bounds on counts that it does not have: those that instances hold back, dropped, or
// sent in packets that did not arrive. Several decoders of one source share the state of
// the senders.
//
// The files, in the order of the data:
//
//   - trust.go who is believed, and how far: listed.go by address, verify.go replay.go
//     keyset.go caps.go by signature and by how much they send, refusals.go what is refused
//   - packet.go a packet and its meta line, stream.go the same on a connection
//   - senders.go the instances, by sequence; clock.go offsets.go clocklog.go how far their
//     clocks are off; lateness.go which are late; held.go what they hold back
//   - handler.go what a decoder finds; decoder.go stats.go lines to counts: canonical.go fractions.go, heldback.go origin.go the lines
//     that are no counts
//   - losses.go gaps.go rulesums.go accounts.go what was lost, and what later lines make up
//     for
//   - lookback.go how far back counts matter
package decode
