// Package daemon runs the aggregator as a process. It turns the counts from a source into hot
// keys in Redis, and reports its state on its page, in its metrics and in its heartbeats.
//
//	daemon.go  the configuration, and the order of the start
//	serve.go   a pipeline: one source, its detector, its publishers
//	beside.go  tasks beside it: the rules file, the heartbeats, the baselines, the webhook
//	sources.go statsd.go kafka.go graphite.go  the sources, and how counts travel, in words
//	owner.go publishers.go changes.go   publishing by one owner or by partition, and its log
//	history.go marks.go  the history, and the marks in it
//	trust.go snapshots.go baselines.go baselinestore.go  which counts are accepted, and the state kept over a restart
//	report.go webhook.go                heartbeats, the webhook
//	page.go systemd.go                  the page and access to it, and notifications to systemd
//	metrics.go metrics_statsd.go metrics_kafka.go metrics_graphite.go metrics_cost.go  its metrics
//	errors.go  the kinds of errors
package daemon
