// Package interop holds hotparam to other programs: producers in Node, Python, Java and
// shell, by StatsD and by Kafka, run against a real daemon, the original StatsD and a real
// broker, join in as docs/PRODUCERS.md says. It has tests alone.
package interop
