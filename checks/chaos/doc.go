// Package chaos lets faults loose on a fleet of real processes and judges, from outside,
// whether limits, publishing and recovery hold:
//
//	        ┌─────────── load ──────────► judge ─► oracle ─► Report
//	plan ─► events                          ▲
//	        └─► instances ─ relays ─ Redis, aggregators ─ watch ─┘
//
// The files, in that order:
//
//	config.go              what a run is, and the command that replays it
//	plan.go                the seeded sequence of events
//	events.go              kinds of events
//	events_process.go      instances and aggregators that are killed, stopped, one too many
//	events_redis.go        Redis that is away, full, read-only, flushed, or holds what is not ours
//	events_nodes.go        one node of a cluster, or the primary that sentinels watch: dead, stopped, out of reach
//	events_rules.go        rolling quotas, changed algorithms, reloads with a line of waiters
//	events_publishing.go   floods
//	events_links.go        slow, silent, cut and garbled links, lost counts, clocks
//	events_kafka.go        the same of Kafka, pauses that it asks for, Kafka that is away
//	build.go, fault.go     the programs, with faults planted on purpose
//	scope.go, outside.go   the life of what is started, in a test and in a program
//	fleet.go, process.go   the processes
//	redis.go, kafka.go     the servers
//	relays.go              what lies between
//	rules.go               the rules, as the file and as the oracle have them
//	load.go                the requests
//	watch.go, writers.go   logs, descriptors, goroutines, health; who publishes
//	judge.go               what is told to the oracle, and what a fault excuses
//	answers.go             what clients were answered, and when
//	troubles.go            and what processes name themselves
//	run.go                 all of it
//	soak.go                the same without faults: does anything grow?
//
// A run belongs to a seed: the same events come in the same order. What the machine
// does besides is measured by a control request that no guard stands before and by a
// goroutine that looks at the clock; all deadlines are extended by it. Processes are
// told to end when the run does, and the kernel ends them when its process dies.
//
// Only tests and the command cmd/chaos use this package; cmd/instance is an API process
// of the fleet.
package chaos
