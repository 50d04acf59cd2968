// Package suggest proposes rules from an access log. It finds the routes and their parameters,
// and measures how much each parameter's requests concentrate on a few values. It then searches
// thresholds by replaying the log, until about the wanted number of keys a day becomes hot.
//
//	log, kept in memory ─► routes (paths to patterns) ─► params, values (counts; usual values)
//	    ─► judge (how concentrated) ─► search (thresholds, each measured by a replay)
//	    ─► measure (what each limit refuses) ─► rules, as YAML
//
// From the durations in a log, or from the metrics of an aggregator, it also proposes limits that
// hold a route to what it was seen to serve:
//
//	log ─► served ─┐
//	aggregator ────┴► capacity (in words, and as rules)
package suggest
