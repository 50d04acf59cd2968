// Package alerts holds the alerts of deploy/prometheus against real faults: stacks of a Redis,
// an aggregator and instances, watched by a real Prometheus. It has tests only. They run by
// themselves, since some faults are floods.
package alerts
