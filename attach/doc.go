// Package attach makes everything that a process needs to be guarded by hotparam, from one
// file in one call:
//
//	hp, err := attach.Open(ctx, "hotparam.yaml")
//	…
//	http.ListenAndServe(":8080", hp.Handler(mux))
//
// The way of the data, by file:
//
//	options.go    what the file does not say
//	hotparam.go   Open makes the parts, Close ends them
//	transport.go  counts leave the process, by what the file names as source
//	fleet.go      what limits need that hold all instances together
//	reload.go     a changed file is put in force
//	mismatch.go   what in Redis does not fit the file
//	stats.go      what the parts have counted
//	metrics.go    the same for Prometheus
//
// Kafka is linked in by
//
//	import _ "github.com/hotparam/hotparam/attach/kafka"
package attach
