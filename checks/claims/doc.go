// Package claims judges the whole pipeline, from the collector's Add to what the
// detector publishes, by what docs/design/aggregator.md claims of its counts:
//
//	Stream ─► collectors ─► packets ─► network ─► decoder ─► detectors ─► judge
//	   └─────────────────────────────► reference ───────────────────────────┘
//
// The collectors, the decoder and the detectors are those of production. The
// network is simulated: it loses, delays, reorders and doubles packets. So are the
// clocks of the instances: they are off, run away and are set. All of it runs on
// a simulated clock in one goroutine and is the same each time for the same seed,
// also the hashes, which in production differ from process to process. The
// reference counts every event by key and pane, and shares no code with the
// windows that it judges: panes are done over again here from what the
// documentation says of them, and so is how far a clock can be known.
//
// Each publish, refresh and list of suspects is judged as it comes, and every
// window as it is over by the lag. Only tests and the command cmd/verifyclaims
// use this package.
package claims
