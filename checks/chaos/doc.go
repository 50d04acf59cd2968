// Package chaos injects faults into a fleet of real processes and judges, from outside, whether
// limits, publishing and recovery hold:
//
//	        ┌─────────── load ──────────► judge ─► oracle ─► Report
//	plan ─► events                          ▲
//	        └─► instances ─ relays ─ Redis, aggregators ─ watch ─┘
//
// The files, in that order:
//
//	config.go              the configuration of a run, and the command that replays it
//	plan.go                the seeded sequence of events
//	events.go              kinds of events
//	events_process.go      instances and aggregators that are killed or stopped, a second aggregator
//	events_redis.go        Redis that is unavailable, full, read-only, flushed, or holds foreign values
//	events_nodes.go        one node of a cluster, or the primary behind sentinels: dead, stopped, unreachable
//	events_rules.go        rolling quotas, changed algorithms, reloads with a queue of waiters
//	events_publishing.go   floods
//	events_links.go        slow, silent, cut and garbled links, lost counts, clocks
//	events_kafka.go        the same links to Kafka, pauses that it asks for, unavailable Kafka
//	build.go, fault.go     the programs, with faults planted on purpose
//	scope.go               the lifetime of started processes
//	fleet.go, process.go   the processes
//	redis.go, kafka.go     the servers
//	relays.go              the links between them
//	rules.go               the rules, for the file and for the oracle
//	load.go                the requests
//	items.go               requests of a route with on_hot, and what its answers say about themselves
//	watch.go, writers.go   logs, descriptors, goroutines, health; the writers of the published set
//	effect.go              what a fault excuses
//	judge.go               the input of the oracle, and until when a fault excuses it
//	answers.go             the answers that clients got, with their times
//	troubles.go            the troubles that processes report themselves
//	run.go                 the whole run
//	soak.go                the same without faults: does anything grow?
//
// A run belongs to a seed: the same events come in the same order. Stalls of the machine are
// measured by a control request without a guard and by a goroutine that watches the clock. They
// extend all deadlines. Processes are asked to end with the run, and the kernel ends them if the
// harness dies.
//
// The key of the route fleet is hot, and its limit has scope: fleet. What an instance admits before
// it knows that the key is hot is not judged by the limit: such answers state none. But an instance
// that stays like that breaks I2.
//
// The answers of the route items come from memory (on_hot). Each says what it was made for, when, and
// by which run of the handler.
//
// Only tests and the command cmd/chaos use this package. cmd/instance is an API process of the
// fleet, and clock is the clock of both.
package chaos
