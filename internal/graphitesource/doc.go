// Package graphitesource finds hot keys in the counts that a StatsD has written to
// Graphite: a job asks Graphite's render API about each second.
//
// The data flows one way:
//
//	StatsD ─► carbon ─► graphite-web ─► client ─► answer ─► ledger ─► detector ─► Publisher
//	                     render, 1/s              checked    what is new
//
// One request asks for all: the heartbeat, a series that StatsD writes at each
// flush, and of each rule the series that have a point above what keeps a key below
// its exit (ask.go). Keys that are hot and have no such point any more are asked
// for by name, so that their counts are right until they cool.
//
// A point holds what StatsD counted in the step that ends at the point's time. The
// newest point of the heartbeat tells up to when all counts have come; newer points
// are left for the next time. Older ones are read again for ten seconds and, since
// a key may show late, for the length of the windows: the ledger knows what was
// counted of each point, so that it counts once, and what it grows by counts, too.
//
// An answer is taken whole or not at all. While Graphite does not answer, or has
// nothing newer, time stands still: nothing becomes hot and nothing cools. Then all
// is read that was missed. What cannot be had, as there is too much of it or
// Graphite has not kept it, is counted as missed, and high counts are unknown.
//
// The time is that of the points, and where there is no heartbeat that of Graphite's
// machine; the clock of ours does not matter.
//
// Several StatsDs must not write the same series: Graphite keeps the last point of
// a time, not their sum.
//
// The files: source.go Run, the schedule · job.go one poll · ask.go the request ·
// client.go answer.go failure.go the answer · count.go what it brings · ledger.go
// names.go series and points · hot.go what is hot · reload.go other rules · config.go stats.go
package graphitesource
