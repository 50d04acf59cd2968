// Package suggest proposes rules from an access log: it finds the routes and their parameters,
// measures how much the requests of each gather on few values, and searches thresholds by
// replaying the log until about as many keys a day become hot as were asked for.
//
//	log, kept in memory ─► routes (paths to patterns) ─► params, values (counts; usual values)
//	    ─► judge (how concentrated) ─► search (thresholds, each measured by a replay)
//	    ─► measure (what each limit refuses) ─► rules, as YAML
package suggest
