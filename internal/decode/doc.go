// Package decode turns packets of StatsD lines into counts, and reports losses.
//
//	packet ─► believed? ─► meta line ─► sender ─► lines ─► accounts ─► Handler
//	          Trust        wire.Meta    clock, losses      missing counts
//
// A [Decoder] reads the data of one source: packets, Kafka records, or the lines of
// connections, each a [Stream]. It passes counts to a [Handler], with times by our clock. It
// also reports bounds on counts that it does not have, because instances hold them back,
// dropped them, or sent them in packets that did not arrive. Several decoders of one source
// share the state of the senders.
//
// The files, in the order of the data:
//
//   - stream.go a connection · packet.go a packet and its meta line
//   - believe.go replay.go refuse.go whether it is believed
//   - offsets.go held.go senders.go sequence.go its sender, by sequence, and its send time
//   - lines.go alike.go line.go its counts · reports.go lines that are no counts
//   - settle.go gaps.go losses.go missing packets, and the lines that make up for them
//   - decoder.go trust.go caps.go keyset.go accounts.go rulesums.go bucketsums.go clock.go
//     clocklog.go stats.go the state of a decoder and its senders
//   - handler.go the decoder's reports · lookback.go how far back counts matter
//   - numbered.go reload.go a change of rules while running
//   - snapshot.go resume.go resumegap.go carried.go the counts of another process
//     before this one
package decode
