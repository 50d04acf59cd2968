// Package hotparam finds which parameter values of an API are hot right now, over all
// instances, and limits just those. It makes everything that a process needs for that, from
// one file in one call:
//
//	hp, err := hotparam.Open(ctx, "hotparam.yaml")
//	…
//	http.ListenAndServe(":8080", hp.Handler(mux))
//
// Data flows one way, through a package for each stage:
//
//	middleware ─► collector ══► aggregator ══► hotkeys ─► middleware ─► limiter
//
// The words that all of them share are in package rules. Counts leave by StatsD; Kafka is
// linked in by
//
//	import _ "github.com/hotparam/hotparam/transport/kafka"
//
// Files, in the order of the data:
//
//	options.go    what the file does not say
//	hotparam.go   Open makes the parts, Close ends them
//	transport.go  counts leave the process, by what the file names as source
//	fleet.go      what limits need that hold all instances together
//	heartbeat.go  what the instance says of itself
//	reload.go     a changed file is put in force
//	mismatch.go   what in Redis does not fit the file
//	stats.go      what the parts have counted
//	metrics.go    the same for Prometheus
package hotparam
