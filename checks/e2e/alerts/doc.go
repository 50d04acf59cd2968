// Package alerts holds what shows faults against real ones: the alerts of deploy/prometheus, the
// dashboard's panels of deploy/grafana, the runbook and hotparam doctor, on stacks of a Redis, an
// aggregator and instances, watched by a real Prometheus. It has tests only. They run by
// themselves, since some faults are floods.
package alerts
