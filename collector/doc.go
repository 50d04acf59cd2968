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
// they reach it or are older than the window. The receiver is told h, so that it
// knows what it does not see. A key that may be hot over the fleet, as its count
// at this instance tells, or is hot or suspect, as [Collector.Steer] tells, is
// exempt. One that is hot by the count of this instance alone is told at once
// ([Collector.OnLocal]).
//
// Memory is bounded. When a table is about to be full, the flush is brought
// forward and keeps what is held back and the busiest keys; what could not be
// kept or counted is told as unsent.
package collector
