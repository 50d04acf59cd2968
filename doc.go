// Package hotparam finds which parameter values of an API are hot right now, over all
// instances, and limits only those. Open reads one file and makes everything that a process
// needs for that:
//
//	hp, err := hotparam.Open(ctx, "hotparam.yaml")
//	…
//	http.ListenAndServe(":8080", hp.Handler(mux))
//
// Data flows one way, through a package for each stage:
//
//	middleware ─► collector ══► aggregator ══► hotkeys ─► middleware ─► limiter
//
// Package rules has the types that all of them share. Counts are sent by StatsD; Kafka is
// linked in by
//
//	import _ "github.com/hotparam/hotparam/transport/kafka"
//
// Files, in the order of the data:
//
//	options.go    settings that the file does not have
//	transport.go  counts leave the process, by the source that the file names
//	fleet.go      the parts for limits that hold for all instances together
//	answers.go    the answers to requests of hot keys, by rule
//	mismatch.go   differences between Redis and the file
//	hotparam.go   what a program calls, up to Close
//	reload.go     a changed file is put in force
//	heartbeat.go  what the instance reports about itself
//	stats.go      the counters of the parts
//	metrics.go    the same for Prometheus
//	open.go       Open makes and starts the parts
package hotparam
