package attach

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metric is a metric of one application: its description and its type.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counterOf(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("hotparam_app_"+name, help, labels, nil), prometheus.CounterValue}
}

func gaugeOf(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("hotparam_app_"+name, help, labels, nil), prometheus.GaugeValue}
}

// The labels are rules, decisions, reasons and versions, never values of parameters.
var (
	metricRequests = counterOf("requests_total", "Requests that the rule's limits decided on, by decision.", "rule", "decision")
	metricCounted  = counterOf("counted_total", "What the rule has counted: requests, or the bytes, milliseconds or units of them.", "rule")
	metricHotKeys  = gaugeOf("hot_keys", "Keys of the rule that are hot and limited here.", "rule")
	metricWaiting  = gaugeOf("waiting_requests", "Requests that wait for their turn.")
	metricPanics   = counterOf("panics_total", "Requests that passed because hotparam panicked.")

	metricExact     = prometheus.NewDesc("hotparam_app_exact_seconds", "Time that requests waited for limits with scope: exact.", nil, nil)
	metricRedisAway = gaugeOf("redis_away_nodes", "Servers of Redis that limits with scope: exact find unavailable.")

	metricDropped = counterOf("dropped_counts_total", "DATA LOSS: counts that could not be sent, by reason.", "reason")

	metricRules    = gaugeOf("rules_info", "1, with the version of the rules in force and the id of the key that redacts values.", "version", "redact_key")
	metricReloads  = counterOf("rules_reloads_total", "Times that a changed file was put in force.")
	metricRejected = counterOf("rules_rejected_total", "Times that a changed file was not put in force.")
	metricRefused  = gaugeOf("rules_refused", "1 while the file is not in force, as it is bad or cannot be read; the last good one is.")

	metricInstances    = gaugeOf("instances", "Instances that send counts, as the aggregator publishes; 0 if it publishes nothing.")
	metricMembers      = gaugeOf("members", "Live instances, where a limit has scope: share or exact; 0 if none has.")
	metricConnected    = gaugeOf("watcher_connected", "Whether the hot set in Redis is followed.")
	metricWatcherDelay = gaugeOf("watcher_delay_seconds", "Time since the hot set was last compared with Redis.")
	metricWatcherFails = counterOf("watcher_failures_total", "Calls and subscriptions of the hot set that failed.")
)

var allMetrics = []metric{
	metricRequests, metricCounted, metricHotKeys, metricWaiting, metricPanics, {desc: metricExact}, metricRedisAway, metricDropped,
	metricRules, metricReloads, metricRejected, metricRefused, metricInstances, metricMembers, metricConnected, metricWatcherDelay, metricWatcherFails,
}

// Describe implements [prometheus.Collector].
func (h *Hotparam) Describe(to chan<- *prometheus.Desc) {
	for _, m := range allMetrics {
		to <- m.desc
	}
}

// Collect implements [prometheus.Collector]: prometheus.MustRegister(hp) adds the metrics of
// METRICS.md, "In the application". A scrape reads counters and costs requests nothing. Labels
// are rules, never values of parameters. A program with several Hotparams gives each labels
// of its own by [prometheus.WrapRegistererWith].
func (h *Hotparam) Collect(to chan<- prometheus.Metric) {
	s := scrape{to}
	s.collectRequests(h)
	s.collectCounts(h)
	s.collectFleet(h)
	h.mu.Lock()
	rules, joined := h.rules.told(), h.fleet.isJoined()
	h.mu.Unlock()
	members, refused := 0, 0.0
	if joined {
		members = h.fleet.members.Stats().Count
	}
	if rules.Problem != "" {
		refused = 1
	}
	s.add(metricMembers, float64(members))
	s.add(metricRules, 1, rules.Version, rules.RedactKey)
	s.add(metricReloads, float64(rules.Reloads))
	s.add(metricRejected, float64(rules.Rejected))
	s.add(metricRefused, refused)
}

// scrape takes the values of one scrape.
type scrape struct{ to chan<- prometheus.Metric }

func (s scrape) add(m metric, value float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

// collectRequests adds what was decided.
func (s scrape) collectRequests(h *Hotparam) {
	for _, r := range h.guard.RuleStats() {
		for decision, n := range r.Decisions {
			s.add(metricRequests, float64(n), r.Rule, decision)
		}
		s.add(metricHotKeys, float64(r.HotKeys), r.Rule)
	}
	stats := h.guard.Stats()
	s.add(metricWaiting, float64(stats.Waiting))
	s.add(metricPanics, float64(stats.Panics))
	times := h.guard.ExactTimes()
	buckets, sum := make(map[float64]uint64, len(times.Bounds)), uint64(0)
	for i, n := range times.Counts {
		sum += uint64(n)
		if i < len(times.Bounds) {
			buckets[times.Bounds[i].Seconds()] = sum
		}
	}
	s.to <- prometheus.MustNewConstHistogram(metricExact, sum, times.Sum.Seconds(), buckets)
	s.add(metricRedisAway, float64(h.guard.BackendStats().Nodes))
}

// collectCounts adds what was counted and what was lost of it.
func (s scrape) collectCounts(h *Hotparam) {
	for _, r := range h.counts.Counted() {
		s.add(metricCounted, float64(r.N), r.Rule)
	}
	dropped := h.counts.Stats().Dropped
	s.add(metricDropped, float64(dropped.TableFull), "table_full")
	byReason := map[string]int64{"too_long": dropped.TooLong, "send_error": dropped.SendError}
	if h.transport.Dropped != nil {
		byReason = h.transport.Dropped()
	}
	for reason, n := range byReason {
		s.add(metricDropped, float64(n), reason)
	}
}

// collectFleet adds what is known of the aggregator and of other instances.
func (s scrape) collectFleet(h *Hotparam) {
	watcher := h.watcher.Stats()
	s.add(metricInstances, float64(watcher.Instances))
	connected := 0.0
	if watcher.Connected {
		connected = 1
	}
	s.add(metricConnected, connected)
	s.add(metricWatcherDelay, max(0, time.Since(watcher.Answered).Seconds()))
	s.add(metricWatcherFails, float64(watcher.Errors))
}
