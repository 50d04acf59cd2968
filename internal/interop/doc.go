// Package interop holds hotparam's Kafka to other programs: producers in Java and
// Python, run against a real broker, join in as docs/PRODUCERS.md says. It has tests
// alone.
package interop
