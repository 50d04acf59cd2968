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
//   - stream.go a connection · packet.go a packet and its meta line
//   - verify.go listed.go replay.go refuse.go whether it is believed
//   - offsets.go held.go senders.go its sender, by sequence, and when it was sent
//   - lines.go alike.go line.go its counts · canonical.go keys of other programs · fractions.go samples ·
//     heldback.go origin.go lines that are no counts · over.go more than a sender may count
//   - settle.go gaps.go losses.go packets that are missing, and lines that make up for them
//   - decoder.go trust.go caps.go keyset.go refusals.go accounts.go rulesums.go bucketsums.go clock.go
//     clocklog.go lateness.go stats.go the state of a decoder and its senders
//   - handler.go what a decoder reports · lookback.go how far back counts matter
//   - numbered.go reload.go other rules while running
//   - snapshot.go resume.go resumegap.go resumesums.go carried.go what another process
//     counted before
package decode
