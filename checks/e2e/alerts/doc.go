// Package alerts checks the means that show faults against real faults: the alerts of
// deploy/prometheus, the dashboard's panels of deploy/grafana, the runbook and hotparam doctor.
// Each fault hits a stack of a Redis, an aggregator and instances, which a real Prometheus
// watches. The package has only tests. They run apart from others, since some faults are floods.
package alerts
