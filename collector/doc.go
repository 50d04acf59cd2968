// Package collector counts keys inside the application and sends the counts through a
// [Sink]: each 100 ms those since the last flush, and within milliseconds those of keys
// that may become hot.
//
// [Collector.Add] is on the request path: it takes no lock, does not allocate and never
// waits. Keys are in sharded tables that persist over flushes, with atomic counters. A
// flush takes the counts and zeroes them; idle keys are removed later. No increment is
// lost: a counter is read and zeroed by one atomic operation, and a table that is replaced
// is closed first, so that a late Add sees that and goes to the new table.
//
// A budget bounds the lines of a flush. If there are more keys, counts below a threshold h
// are held back, where h is the least for which the others fit, and add up until they
// reach h or are older than the window. Each flush states h, which bounds the counts that
// the receiver does not see. Keys that may be hot over the fleet by their count at this
// instance are exempt, and so are hot keys and suspects ([Collector.Steer]). A key that is
// hot by the count of this instance alone is reported at once ([Collector.OnLocal]).
//
// Memory is bounded. When a table is about to be full, the next flush comes early and
// keeps the busiest keys and those with counts that are held back. Counts that cannot be
// kept are reported as unsent.
//
//	Add ─► shard, table ─► Run ─► flush ─► budget ─► Sink ══► statsdsink, kafkasink
//	                        │ 5 ms: urgent    │ held back
//	                        └► localDetector ─┴► OnLocal
//
// The collector and its rules: collector.go reload.go. Counting: table.go bitset.go shard.go.
// Paces: run.go urgent.go cut.go. A flush: flush.go budget.go groups.go accounts.go, sent
// through sink.go. What may be hot: profile.go candidates.go steer.go; what is hot here alone:
// local.go ring.go. Room: compact.go pool.go. Where requests come from: origins.go. Who sends:
// instance.go. What was counted: counted.go stats.go.
package collector
