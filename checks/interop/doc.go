// Package interop checks hotparam against other programs. Producers in Node, Python, Java and
// shell send counts over StatsD and Kafka as docs/PRODUCERS.md describes. They run against a real
// daemon, the original StatsD and a real broker. The package has only tests.
package interop
