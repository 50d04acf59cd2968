// Package collector counts keys inside the application and sends the counts through a [Sink].
// Every 100 ms it sends all counts since the last flush. The counts of keys that may become hot
// are sent within milliseconds.
//
// [Collector.Add] is on the request path: it takes no lock, does not allocate and never
// waits. Keys are in sharded tables that persist over flushes, with atomic counters. A
// flush takes the counts and zeroes them; idle keys are removed later. No increment is
// lost: one atomic operation reads and zeroes a counter. A table that is replaced is closed
// first, so that a late Add sees that and goes to the new table.
//
// A budget bounds the lines of a flush. If there are more keys, counts below h are held back,
// where h is the least threshold with which the other counts fit. They add up until they reach h
// or are older than the window. Each flush states h, which bounds the counts that the receiver does
// not see. Hot keys, suspects ([Collector.Steer]), and keys that may be hot over the fleet by
// their count at this instance are exempt. A key that is hot by the count of this instance alone
// is reported at once ([Collector.OnLocal]).
//
// Memory is bounded. When a table is about to be full, the next flush comes early and keeps the
// busiest keys and the keys whose counts are held back. Counts that cannot be kept are reported
// as unsent.
//
//	Add ─► shard, table ─► Run ─► flush ─► budget ─► Sink ══► statsdsink, kafkasink
//	                        │ 5 ms: urgent    │ held back
//	                        └► localDetector ─┴► OnLocal
//
// The collector and its rules: collector.go reload.go. Counting: count.go bitset.go shard.go.
// Paces: run.go urgent.go. A flush: flush.go heldback.go budget.go groups.go accounts.go, sent
// through sink.go. Candidates: profile.go candidates.go steer.go. Keys that are hot here alone:
// local.go panes.go. Room: compact.go pool.go. Origins of requests: origins.go. Sums and
// statistics: rulecounts.go stats.go.
package collector
