// Package baseline keeps the counts of keys in the hours of the last days, so that a key can be
// compared with the same hour of earlier days.
//
//	detector ─► Days ◄─► Keeper ◄══► Store (Redis)
//	    ▲        │
//	    └────────┘ Reference
//
// An [Hour] holds the counts of one part of the keys in one hour, UTC. It lists the keys with
// the highest counts, each by a hash of its text and a count of 16 bits, and a floor: a key
// that is not listed counted less. Detectors put hours into [Days] and read only from there, so
// that counting waits for no store. A [Keeper] writes the hours of this process to a [Store]
// and reads those of all processes.
//
// # Files
//
//   - hour.go: the counts of a part in an hour, in 16 bits, and hashes of rules and keys.
//     encoding.go: its bytes.
//   - days.go: the hours of the last days. reference.go: the baseline of a key.
//   - keeper.go: the interface of a store, reads and writes, and their times.
package baseline
