// Package daemon is the aggregator as a process: counts that arrive from a source become hot keys
// in Redis, and its page, its metrics and its heartbeats say how it is.
//
//	daemon.go  what it is given, and the order in which it begins
//	serve.go   a pipeline: one source, its detector, its publishers
//	sources.go statsd.go kafka.go graphite.go  the sources, and how counts travel, in words
//	owner.go publishers.go changes.go   what is published, by one owner or by partition, and its log
//	trust.go snapshots.go baselines.go  whose counts are believed, and what outlasts a restart
//	rulesfile.go report.go webhook.go   the rules file that it follows, heartbeats, events for others
//	page.go systemd.go                  who may look, and what systemd is told
//	metrics.go metrics_statsd.go metrics_kafka.go metrics_graphite.go  its metrics
//	errors.go  whose fault an error is
//
// Around a pipeline lie others, each of which adds one thing: the webhook, the baselines, the
// rules file, the heartbeats.
package daemon
