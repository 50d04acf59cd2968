// Package collector counts keys inside the application and sends what it
// counted: each 100 ms the counts of every key that was seen since the last
// flush leave through a [Sink].
//
// Counting is the request path: [Collector.Add] takes no lock, does not
// allocate and never waits. Keys live in sharded tables that persist over
// flushes, with atomic counters; a flush takes the counts and zeroes them, and
// a key that stays idle leaves later. No increment is lost between the two:
// what a counter held is taken by one atomic operation, and a table that is
// replaced is closed first, so that a late adder sees it and goes to the new
// one.
//
// Memory is bounded. When a table is full, the flush is brought forward and
// keeps the busiest keys only; what could not be counted until then is counted
// as dropped, and the next packet says so.
package collector
