// Package real gives tests the real programs beside Redis, which package testenv has: Kafka,
// StatsD and Graphite, gateways, Prometheus, a browser, and the languages of other programs.
// What testenv says of its servers holds here, too.
//
// What comes from a registry (Kafka's jars, npm and Python packages) is fetched once and kept
// in hotparam-test below the user's cache directory.
package real
