package hotparam

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/rules"
)

// metric is a metric of one application, declared together with what METRICS.md says of it.
type metric struct {
	name, help string
	labels     []string
	kind       prometheus.ValueType // of a histogram UntypedValue
	// meaning is the metric's cell in METRICS.md, in Markdown, where that says more than the
	// help.
	meaning string
	desc    *prometheus.Desc
}

func newMetric(kind prometheus.ValueType, name, help string, labels []string) metric {
	name = "hotparam_app_" + name
	return metric{name: name, help: help, labels: labels, kind: kind, desc: prometheus.NewDesc(name, help, labels, nil)}
}

func counterOf(name, help string, labels ...string) metric {
	return newMetric(prometheus.CounterValue, name, help, labels)
}

func gaugeOf(name, help string, labels ...string) metric {
	return newMetric(prometheus.GaugeValue, name, help, labels)
}

func histogramOf(name, help string) metric {
	return newMetric(prometheus.UntypedValue, name, help, nil)
}

// explain sets what METRICS.md says of the metric in place of its help: Markdown, without a
// capital and a full stop.
func (m metric) explain(meaning string) metric {
	m.meaning = meaning
	return m
}

// The labels are rules, decisions, reasons and versions, never values of parameters.
var (
	metricRequests = counterOf("requests_total", "Requests that the rule's limits decided on, by decision.", "rule", "decision").
			explain("requests that a limit of the rule decided on: `within` it; refused as `limited` (over the limit), " +
			"`blocked` (a value that the rule blocks), `locked` (a penalty lasts), `busy` (all permits in use), " +
			"`away` (Redis is away, and the limit fails closed), `unread` (a body that cannot be read, by " +
			"`unread: reject`), or answered by the rule as `served`; let pass as `shadow` (over a limit that " +
			"only watches) or `open` (hotparam could not decide); `gone`, its client left while it waited. A " +
			"request counts for the rule that decided, and for each limit in shadow mode that it is over. Rules " +
			"without a limit have none")
	metricCounted = counterOf("counted_total", "What the rule has counted: requests, or the bytes, milliseconds or units of them.", "rule").
			explain("what a rule with `hot` has counted: requests, or the bytes, milliseconds or units of them, hot or " +
			"not")
	metricHotKeys   = gaugeOf("hot_keys", "Keys of the rule that are hot and limited here.", "rule")
	metricDisplaced = counterOf("displaced_keys_total", "Keys of the rule's limits that lost their place in a full table, or found none.", "rule").
			explain("keys of the rule's limits that lost their place in a table with `max_keys` others, or found none; " +
			"without a rule, keys of limits with `scope: exact` while Redis is away. They are " +
			"[limited all the same](docs/LIMITS.md#a-full-table-of-keys), and a key may be refused that should not be")
	metricWaiting = gaugeOf("waiting_requests", "Requests that wait for their turn.")
	metricPanics  = counterOf("panics_total", "Requests that passed because hotparam panicked.").
			explain("requests that passed because hotparam panicked: please report it")

	metricExact = histogramOf("exact_seconds", "Time that requests waited for limits with scope: exact.").
			explain("how long requests waited for limits with `scope: exact`, each for all its limits")
	metricRedisAway = gaugeOf("redis_away_nodes", "Servers of Redis that limits with scope: exact find unavailable.").
			explain("servers of Redis that these limits find unavailable: `when_redis_is_away` decides meanwhile")

	metricDropped = counterOf("dropped_counts_total", "DATA LOSS: counts that could not be sent, by reason.", "reason").
			explain("counts that could not be sent: `table_full` (too many distinct keys between two flushes), " +
			"`too_long` (the key's line fits no packet or record); by StatsD `send_error` (nobody listens, no " +
			"such host); by Kafka `buffer_full` (the brokers are away or slow), `delivery` (they refused the " +
			"record), `not_connected` (the partitions were not known yet), `no_rule` (the sink has other rules)")

	metricRules = gaugeOf("rules_info", "1, with the version of the rules in force and the id of the key that redacts values.", "version", "redact_key").
			explain("1: the version of the rules in force (a hash of [what decides](docs/RUNNING.md#which-rules-are-where) in the file), and an id of the key that [redacts " +
			"values](docs/SECURITY.md#redacted-values), which says nothing about the key. Instances should agree " +
			"in both")
	metricReloads  = counterOf("rules_reloads_total", "Times that a changed file was put in force.")
	metricRejected = counterOf("rules_rejected_total", "Times that a changed file was not put in force.").
			explain("times that a changed file was not, since it was bad or needs a restart: the log says why")
	metricRefused = gaugeOf("rules_refused", "1 while the file is not in force, as it is bad or cannot be read; the last good one is.").
			explain("1 while the file is not the one whose rules are in force, since it was bad or needs a restart: " +
			"the log says why, and `Stats().Rules.Problem`")

	metricInstances = gaugeOf("instances", "Instances that send counts, as the aggregator publishes; 0 if it publishes nothing.").
			explain("instances that send counts, as the aggregator publishes; 0 when it publishes nothing")
	metricMembers = gaugeOf("members", "Live instances, where a limit has scope: share or exact; 0 if none has.").
			explain("live instances, where a limit has `scope: share` or `exact`")
	metricAssumed = gaugeOf("members_assumed", "Live instances that are assumed, as Redis does not say how many there are; 0 if it does.").
			explain("live instances that are assumed for limits with `scope: share` or `exact`, as Redis has not said since " +
			"the start how many there are: [`instances`](docs/RULES.md#the-top-of-the-file), or 1; 0 once it has")
	metricConnected = gaugeOf("watcher_connected", "Whether the hot set in Redis is followed.").
			explain("1 while the hot set in Redis is followed")
	metricWatcherDelay = gaugeOf("watcher_delay_seconds", "Time since the hot set was last compared with Redis.").
				explain("how long ago the hot set was last compared with Redis: about 1 in good times")
	metricHeldKeys = gaugeOf("held_keys", "Hot keys that are held while no aggregator is heard of.").
			explain("hot keys that stay limited by `aggregator.hold_when_away` while no aggregator is heard of; 0 in good times")
	metricHeldSeconds = gaugeOf("held_seconds", "For how long hot keys are held; 0 if none is.").
				explain("for how long they have been held; 0 if none is")
	metricWatcherFails = counterOf("watcher_failures_total", "Calls and subscriptions of the hot set that failed.").
				explain("failed calls and lost subscriptions")

	metricVersions = gaugeOf("rules_versions", "Versions of the rules that instances and aggregators have now; 0 if it is not known.").
			explain("how many versions of the rules instances and aggregators have now: more than 1 while they differ, " +
			"0 while Redis is away or the rights for heartbeats are missing")
	metricControls = gaugeOf("controls", "Keys that operators pin, block or allow, by action.", "action").
			explain("keys that operators `pin`, `block` or `allow` now, as this instance knows")
)

// allMetrics are in the order of METRICS.md.
var allMetrics = []metric{
	metricRequests, metricCounted, metricHotKeys, metricDisplaced, metricWaiting, metricPanics, metricExact, metricRedisAway, metricDropped,
	metricRules, metricReloads, metricRejected, metricRefused, metricInstances, metricMembers, metricAssumed, metricConnected, metricWatcherDelay, metricWatcherFails, metricHeldKeys, metricHeldSeconds,
	metricVersions, metricControls,
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
	members, refused := redislimiter.MembersStats{}, 0.0
	if joined {
		members = h.fleet.members.Stats()
	}
	if rules.Problem != "" {
		refused = 1
	}
	s.add(metricMembers, float64(members.Count))
	s.add(metricAssumed, float64(members.Assumed))
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
	for rule, n := range h.guard.Displaced() {
		s.add(metricDisplaced, float64(n), rule)
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
	s.to <- prometheus.MustNewConstHistogram(metricExact.desc, sum, times.Sum.Seconds(), buckets)
	s.add(metricRedisAway, float64(h.guard.BackendStats().Nodes))
}

// collectCounts adds what was counted and what was lost of it.
func (s scrape) collectCounts(h *Hotparam) {
	if h.counts == nil {
		return
	}
	for _, r := range h.counts.Counted() {
		s.add(metricCounted, float64(r.N), r.Rule)
	}
	for reason, n := range h.dropped() {
		s.add(metricDropped, float64(n), reason)
	}
}

// collectFleet adds what is known of the aggregator and of other instances.
func (s scrape) collectFleet(h *Hotparam) {
	if h.counts == nil {
		return // there is no hot set to be late with
	}
	watcher := h.watcher.Stats()
	s.add(metricInstances, float64(watcher.Instances))
	connected := 0.0
	if watcher.Connected {
		connected = 1
	}
	s.add(metricConnected, connected)
	s.add(metricWatcherDelay, max(0, time.Since(watcher.Answered).Seconds()))
	s.add(metricWatcherFails, float64(watcher.Errors))
	held := 0.0
	if !watcher.HeldSince.IsZero() {
		held = max(0, time.Since(watcher.HeldSince).Seconds())
	}
	s.add(metricHeldKeys, float64(watcher.Held))
	s.add(metricHeldSeconds, held)
	s.add(metricVersions, float64(len(h.heartbeat.Stats().Versions)))
	n := make(map[rules.ControlAction]int)
	for _, c := range h.guard.Controls() {
		n[c.Action]++
	}
	for _, action := range []rules.ControlAction{rules.ControlBlock, rules.ControlAllow, rules.ControlPin} {
		s.add(metricControls, float64(n[action]), string(action))
	}
}
