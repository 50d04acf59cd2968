// Package graphitesource finds hot keys in the counts that StatsD has written to Graphite. A job
// queries Graphite's render API about once a second.
//
// The data flows one way:
//
//	StatsD ─► carbon ─► graphite-web ─► client ─► answer ─► ledger ─► detector ─► Publisher
//	                     render, 1/s              checked    new counts
//
// One request asks for the heartbeat, a series that StatsD writes at each flush, and for the
// counts of all rules. A rule's series are sent if they have a point too high for a key below
// its exit (ask.go). Keys that are hot and no longer have such a point are requested by name, so
// that their counts are right until they cool.
//
// A point holds the counts of the step that ends at the point's time. Counts are complete up to
// the newest point of the heartbeat; newer points are left for the next poll. Older ones are
// read again for ten seconds and, since a key may appear late, for the length of the windows.
// The ledger records the count of each point, so that it counts once, and its growth is counted
// as well.
//
// An answer is processed whole or not at all. While Graphite does not answer, or has no newer
// points, time stands still: no key becomes hot or cools. Then all missed points are read.
// Points that cannot be read, because there are too many or Graphite has not kept them, are
// counted as missed, and high counts are unknown.
//
// The time is that of the points or, without a heartbeat, that of Graphite's machine. The clock
// of our machine does not matter.
//
// Several StatsDs must not write the same series: Graphite keeps the last point of a time, not
// their sum.
//
// The files: source.go Run, the schedule · job.go one poll · ask.go the request · client.go
// answer.go failure.go the answer · count.go counting an answer · ledger.go names.go series and
// points · hot.go the hot keys · reload.go other rules · config.go stats.go
package graphitesource
