// Package claims checks the whole pipeline, from the collector's Add to the events that the
// detector publishes, against the claims of docs/design/aggregator.md about its counts:
//
//	EventStream ─► collectors ─► packets ─► network ─► decoder ─► detectors ─► judge
//	   └─────────────────────────────► reference ───────────────────────────┘
//
// The collectors, the decoder and the detectors are those of production. The network is
// simulated: it loses, delays, reorders and doubles packets. The instances' clocks are simulated
// too: they are off, drift and are set. Everything runs on a simulated clock in one goroutine,
// and the same seed gives the same run. The hashes are seeded as well, although in production
// they differ from process to process. The reference counts every event by key and pane and
// shares no code with the windows that it judges. It implements panes, and how far a clock can be
// known, a second time from the documentation.
//
// The judge checks each publish, refresh and list of suspects as it comes, and every window once
// the lag has passed since its end. Only tests and the command cmd/verifyclaims use this package.
package claims
