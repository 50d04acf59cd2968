// Package collector counts keys inside the application and sends what it
// counted: each 100 ms the counts that came since the last flush leave through a
// [Sink], those of keys that may become hot within milliseconds.
//
// Counting is the request path: [Collector.Add] takes no lock, does not
// allocate and never waits. Keys live in sharded tables that persist over
// flushes, with atomic counters; a flush takes the counts and zeroes them, and
// a key that stays idle leaves later. No increment is lost between the two:
// what a counter held is taken by one atomic operation, and a table that is
// replaced is closed first, so that a late adder sees it and goes to the new
// one.
//
// What leaves is bounded by a budget of lines: when more keys have come, the
// counts below h are held back, h being the least that fits, and add up until
// they reach it or are older than the window. Each flush states h, so that the receiver
// knows what it does not see. A key that may be hot over the fleet, by its count at this
// instance, or that is hot or suspect, by [Collector.Steer], is exempt. One that is hot by
// the count of this instance alone is reported at once ([Collector.OnLocal]).
//
// Memory is bounded. When a table is about to be full, the flush is brought
// forward and keeps what is held back and the busiest keys; what could not be
// kept or counted is reported as unsent.
//
//	Add ─► shard, table ─► Run ─► flush ─► budget ─► Sink ══► statsdsink, kafkasink
//	                        │ 5 ms: urgent    │ held back
//	                        └► localDetector ─┴► OnLocal
//
// Counting: table.go bitset.go shard.go. Paces: run.go urgent.go. A flush: flush.go
// budget.go groups.go accounts.go, sent through sink.go. What may be hot: profile.go
// candidates.go steer.go; what is hot here alone: local.go ring.go. Room: compact.go
// pool.go. Where requests come from: origins.go. Who sends: instance.go.
package collector
