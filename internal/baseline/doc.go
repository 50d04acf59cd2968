// Package baseline keeps what keys counted in the hours of the last days, so that a key can be
// compared with its own same hour of the days before.
//
//	detector ─► Days ◄─► Keeper ◄══► Store (Redis)
//	    ▲        │
//	    └────────┘ Reference
//
// An [Hour] is what one part of the keys counted in one hour, UTC. It lists the keys that
// counted most, each by a hash of its text and a count of 16 bits, and a floor: a key that is
// not listed counted less. Detectors put hours into [Days], which is all that they read, so
// that counting waits for no store. A [Keeper] writes the hours of this process to a [Store]
// and reads those of all processes.
//
// # Files
//
//   - quantity.go: counts of 16 bits. hash.go: hashes of rules and keys.
//   - hour.go: what a part counted in an hour. encoding.go: its bytes.
//   - days.go: the hours of the last days. reference.go: what a key is compared with.
//   - store.go: the seam. keeper.go: what is read and written, and when.
package baseline
