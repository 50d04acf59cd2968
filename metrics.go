package hotparam

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
)

// scrape holds the statistics that the metrics of one scrape are computed from.
type scrape struct {
	*Hotparam
	guarded middleware.Stats
	rules   RulesStats
	members redislimiter.MembersStats
	watcher *hotkeys.WatcherStats // nil if no rule counts, so that no hot set can be late
	onHot   map[string]OnHotStats // by rule
}

func (h *Hotparam) scrape() scrape {
	s := scrape{Hotparam: h, guarded: h.guard.Stats(), rules: h.rulesStats(), onHot: h.answers.Stats()}
	h.mu.Lock()
	joined := h.fleet.isJoined()
	h.mu.Unlock()
	if joined {
		s.members = h.fleet.members.Stats()
	}
	if h.counts != nil {
		watcher := h.watcher.Stats()
		s.watcher = &watcher
	}
	return s
}

// ofWatcher returns a gauge of the hot set in Redis.
func ofWatcher(name, help string, value func(*scrape) float64) figure.Figure[scrape] {
	return figure.New(prometheus.GaugeValue, name, help, nil, func(s *scrape, emit func(float64, ...string)) {
		if s.watcher != nil {
			emit(value(s))
		}
	})
}

// figures are in the order of METRICS.md. Their labels are rules, decisions, reasons and
// versions, never values of parameters.
var figures = []figure.Figure[scrape]{
	figure.New(prometheus.CounterValue, "app_requests_total", "Requests decided by the rule's limits, by decision.", []string{"rule", "decision"},
		func(s *scrape, emit func(float64, ...string)) {
			for _, r := range s.guard.RuleStats() {
				for decision, n := range r.Decisions {
					emit(float64(n), r.Rule, decision)
				}
			}
		}).
		Explain("requests that a limit of the rule decided: `within` it; refused as `limited` (over the limit), " +
			"`blocked` (a value that the rule blocks), `locked` (during a penalty), `busy` (all permits in use), " +
			"`away` (Redis is unavailable, and the limit fails closed), `unread` (a body that cannot be read, by " +
			"`unread: reject`), or answered by the rule as `served`; let pass as `shadow` (over a limit that " +
			"only watches) or `open` (hotparam could not decide); `gone`, its client left while it waited; " +
			"`shared`, answered by `on_hot` from memory or by the answer to an identical request, or passed by the first " +
			"of a [gateway's steps](docs/GATEWAYS.md#answers-from-a-gateways-cache) and not by the second. Each " +
			"request counts once, for the deciding rule, and again for each exceeded limit in shadow mode. Rules without a " +
			"limit have none"),
	figure.CountersBy("app_counted_total", "Count of the rule: requests, or their bytes, milliseconds or units.", "rule",
		func(s *scrape, emit func(string, int64)) {
			if s.counts == nil {
				return
			}
			for _, r := range s.counts.Counted() {
				emit(r.Rule, r.N)
			}
		}).
		Explain("count of a rule with `hot`: requests, or their bytes, milliseconds or units, hot or not"),
	figure.GaugesBy("app_hot_keys", "Keys of the rule that are hot and limited here.", "rule",
		func(s *scrape, emit func(string, float64)) {
			for _, r := range s.guard.RuleStats() {
				emit(r.Rule, float64(r.HotKeys))
			}
		}),
	figure.New(prometheus.CounterValue, "app_on_hot_requests_total", "Requests of hot keys of rules with on_hot, by how they were answered.", []string{"rule", "how"},
		func(s *scrape, emit func(float64, ...string)) {
			for rule, o := range s.onHot {
				for how, n := range o.Requests {
					emit(float64(n), rule, how)
				}
			}
		}).
		Explain("requests of hot keys of a rule with `on_hot`: answered from memory as `hit`, or as `stale` while the " +
			"answer is refreshed or the handler fails; `joined`, by the answer to an identical request; `led`, by the " +
			"run of the handler whose answer serves others; `alone`, not for sharing and so as without `on_hot`; " +
			"`refused` by the limit; `gone`, its client left"),
	figure.New(prometheus.CounterValue, "app_on_hot_alone_total", "Requests of hot keys that were not answered together, by reason.", []string{"rule", "reason"},
		func(s *scrape, emit func(float64, ...string)) {
			for rule, o := range s.onHot {
				for reason, n := range o.Alone {
					emit(float64(n), rule, reason)
				}
			}
		}).
		Explain("requests with `how=\"alone\"`, by the reason, which is also in the `Cache-Status` of their answers. In the " +
			"request: `method`, `body`, `authorization`, `certificate`, `cookie`, `range`, `upgrade`, `condition` (`If-Match`), " +
			"`request-no-cache`, `request-no-store`, `long` (its target), or `route` (its path is not one of the rule's). In the answer: `status`, `set-cookie`, `private`, " +
			"`no-store`, `no-cache`, `vary` (by more than the rule's `vary`), `content-range`, `trailer`, `stream`, `expired`, `over` " +
			"(`max`), or `withheld` by an adapter. Of the run that others waited for: `failed` (5xx), `panic`, `truncated`, `deadline` " +
			"(10 s). Else: `full` (`total`) or `busy` (1,024 runs), `under-way` (with `coalesce: false`), `wait` (longer than that), " +
			"`unadmitted` (the limit refused the runs to join), `closed`"),
	figure.CountersBy("app_on_hot_refreshes_total", "Runs of the handler that refreshed an answer in use.", "rule",
		func(s *scrape, emit func(string, int64)) {
			for rule, o := range s.onHot {
				emit(rule, o.Refreshes)
			}
		}),
	figure.GaugesBy("app_on_hot_bytes", "Memory of the rule's answers, including those being recorded.", "rule",
		func(s *scrape, emit func(string, float64)) {
			for rule, o := range s.onHot {
				emit(rule, float64(o.Bytes))
			}
		}).
		Explain("memory of the rule's answers, including those being recorded; at most `on_hot.total`"),
	figure.CountersBy("app_on_hot_invalidations_total", "Invalidations of answers to requests of hot keys, between instances.", "kind",
		func(s *scrape, emit func(string, int64)) {
			if len(s.onHot) == 0 {
				return
			}
			i := s.answers.invalidator.Stats()
			emit("sent", int64(i.Sent))
			emit("received", int64(i.Received))
			emit("all", int64(i.Flushes))
			emit("failed", int64(i.Errors))
		}).
		Explain("invalidations of such answers between instances: `sent` and `received`; `all`, this instance dropped " +
			"all its answers, as it may have missed one; `failed`, calls to Redis and lost subscriptions. Until Redis " +
			"answers again, an answer at another instance may last to its own end"),
	figure.CountersBy("app_displaced_keys_total", "Keys of the rule's limits that lost their place in a full table, or found none.", "rule",
		func(s *scrape, emit func(string, int64)) {
			for rule, n := range s.guard.Displaced() {
				emit(rule, n)
			}
		}).
		Explain("keys that lost their place in a full table (`max_keys`), or found none. Without a rule: keys of " +
			"limits with `scope: exact` while Redis is unavailable. They are [still " +
			"limited](docs/LIMITS.md#a-full-table-of-keys), and may be refused too early"),
	figure.Gauge("app_waiting_requests", "Requests that wait for their turn.",
		func(s *scrape) float64 { return float64(s.guarded.Waiting) }),
	figure.Counter("app_panics_total", "Requests that passed because hotparam panicked.",
		func(s *scrape) int64 { return s.guarded.Panics }).
		Explain("requests that passed because hotparam panicked: please report it"),
	figure.Counter("app_unmeasured_requests_total", "Requests whose cost found no room.",
		func(s *scrape) int64 { return s.guarded.Unmeasured }).
		Explain("requests of rules with [`hot: {cost: auto}`](docs/RULES.md#hot-by-cost) whose time found no room in this " +
			"process, at least in part: more than 650,000 end in a second, or more than 32,768 keys or routes are used in 100 ms"),
	figure.Counter("app_canceled_requests_total", "Requests of held keys that were canceled.",
		func(s *scrape) int64 { return s.guarded.Canceled }).
		Explain("running requests of keys that are [hot by cost](docs/RULES.md#hot-by-cost) that were canceled, by `cancel: true`"),
	figure.Histogram("app_exact_seconds", "Time that requests waited for limits that Redis decides.",
		func(s *scrape) (count uint64, sum float64, buckets map[float64]uint64) {
			times := s.guard.ExactTimes()
			buckets = make(map[float64]uint64, len(times.Bounds))
			for i, n := range times.Counts {
				if count += uint64(n); i < len(times.Bounds) {
					buckets[times.Bounds[i].Seconds()] = count
				}
			}
			return count, times.Sum.Seconds(), buckets
		}).
		Explain("time that requests waited for limits that Redis decides: those with `scope: exact`, and those with `scope: fleet` when no permits are held in advance. A request asks all its limits at once"),
	figure.Gauge("app_redis_away_nodes", "Redis servers that are unavailable to limits with scope: fleet or exact.",
		func(s *scrape) float64 { return float64(s.guard.BackendStats().Nodes) }).
		Explain("Redis servers that are unavailable to these limits; until they return, `when_redis_is_away` decides"),
	figure.Gauge("app_fleet_stocks", "Hot keys with scope: fleet whose permits are held or wanted here.",
		func(s *scrape) float64 { return float64(s.guard.FleetStats().Active) }),
	figure.Counter("app_fleet_settlements_total", "Settlements of permits with Redis, one for each hot key and period, with scope: fleet.",
		func(s *scrape) int64 { return int64(s.guard.FleetStats().Asks) }),
	figure.Counter("app_fleet_failures_total", "Calls for such settlements that failed.",
		func(s *scrape) int64 { return int64(s.guard.FleetStats().Failures) }).
		Explain("calls for such settlements that failed. Instances use the permits that they hold; after 80 to 200 " +
			"ms without an answer `when_redis_is_away` decides"),
	figure.CountersBy("app_dropped_counts_total", "DATA LOSS: counts that could not be sent, by reason.", "reason",
		func(s *scrape, emit func(string, int64)) {
			for reason, n := range s.dropped() {
				emit(reason, n)
			}
		}).
		Explain("counts that could not be sent: `table_full` (too many distinct keys between two flushes), " +
			"`too_long` (the key's line fits no packet or record); by StatsD `send_error` (no listener, no such " +
			"host); by Kafka `buffer_full` (the brokers are unavailable or slow), `delivery` (they refused the " +
			"record), `not_connected` (the partitions were not known yet), `no_rule` (the sink has other rules)"),
	figure.New(prometheus.GaugeValue, "app_rules_info", "1, with the version of the rules in force and the id of the key that redacts values.", []string{"version", "redact_key"},
		func(s *scrape, emit func(float64, ...string)) { emit(1, s.rules.Version, s.rules.RedactKey) }).
		Explain("1; the labels are the version of the rules in force (a " +
			"[hash](docs/RUNNING.md#which-rules-are-where)), and an id of the key that [redacts " +
			"values](docs/SECURITY.md#redacted-values), which does not reveal it. Instances should agree in both"),
	figure.Counter("app_rules_reloads_total", "Changed files that were put in force.",
		func(s *scrape) int64 { return int64(s.rules.Reloads) }),
	figure.Counter("app_rules_rejected_total", "Changed files that were refused.",
		func(s *scrape) int64 { return int64(s.rules.Rejected) }).
		Explain("changed files that were refused, because they are invalid or need a restart; the log has the reason"),
	figure.Flag("app_rules_refused", "1 while the rules of the file are not in force, because the file is invalid, unreadable or needs a restart; the last valid rules are.",
		func(s *scrape) bool { return s.rules.Problem != "" }).
		Explain("1 while the rules of the file are not in force, because the file is invalid, unreadable or needs a " +
			"restart; the last valid rules are. The log and `Stats().Rules.Problem` have the reason"),
	ofWatcher("app_instances", "Instances that send counts, as published by the aggregator; 0 if it publishes none.",
		func(s *scrape) float64 { return float64(s.watcher.Instances) }).
		Explain("instances that send counts, as published by the aggregator; 0 if it publishes none"),
	figure.Gauge("app_members", "Live instances, where a limit has scope: share, fleet or exact; 0 if none has.",
		func(s *scrape) float64 { return float64(s.members.Count) }).
		Explain("live instances, where a limit has `scope: share`, `fleet` or `exact`"),
	figure.Gauge("app_members_assumed", "Assumed number of live instances while Redis does not report it; otherwise 0.",
		func(s *scrape) float64 { return float64(s.members.Assumed) }).
		Explain("assumed number of live instances for limits with `scope: share`, `fleet` or `exact`, until Redis reports it: " +
			"[`instances`](docs/RULES.md#the-top-of-the-file), or 1; then 0"),
	ofWatcher("app_watcher_connected", "Whether the hot set in Redis is followed.",
		func(s *scrape) float64 {
			if s.watcher.Connected {
				return 1
			}
			return 0
		}).
		Explain("1 while the hot set in Redis is followed"),
	ofWatcher("app_watcher_delay_seconds", "Time since the hot set was last compared with Redis.",
		func(s *scrape) float64 { return max(0, time.Since(s.watcher.Answered).Seconds()) }).
		Explain("time since the hot set was last compared with Redis; normally about 1"),
	figure.New(prometheus.CounterValue, "app_watcher_failures_total", "Calls and subscriptions of the hot set that failed.", nil,
		func(s *scrape, emit func(float64, ...string)) {
			if s.watcher != nil {
				emit(float64(s.watcher.Errors))
			}
		}).
		Explain("failed calls and lost subscriptions"),
	ofWatcher("app_held_keys", "Hot keys held while no aggregator sends heartbeats.",
		func(s *scrape) float64 { return float64(s.watcher.Held) }).
		Explain("hot keys that stay limited by `aggregator.hold_when_away` while no aggregator sends heartbeats; normally 0"),
	ofWatcher("app_held_seconds", "Time that hot keys have been held; 0 if none is.",
		func(s *scrape) float64 {
			if s.watcher.HeldSince.IsZero() {
				return 0
			}
			return max(0, time.Since(s.watcher.HeldSince).Seconds())
		}).
		Explain("time that they have been held; 0 if none is"),
	ofWatcher("app_rules_versions", "Versions of the rules that instances and aggregators have now; 0 if it is not known.",
		func(s *scrape) float64 { return float64(len(s.heartbeat.Stats().Versions)) }).
		Explain("versions of the rules among instances and aggregators: more than 1 while they differ, 0 while Redis " +
			"is unavailable or the rights for heartbeats are missing"),
	figure.GaugesBy("app_controls", "Keys that operators pin, block or allow, by action.", "action",
		func(s *scrape, emit func(string, float64)) {
			if s.watcher == nil {
				return
			}
			n := make(map[published.ControlAction]int)
			for _, c := range s.guard.Controls() {
				n[c.Action]++
			}
			for _, action := range []published.ControlAction{published.ControlBlock, published.ControlAllow, published.ControlPin} {
				emit(string(action), float64(n[action]))
			}
		}).
		Explain("keys that operators `pin`, `block` or `allow` now, as this instance knows"),
}

// Describe implements [prometheus.Collector].
func (h *Hotparam) Describe(to chan<- *prometheus.Desc) { figure.Describe(to, figures) }

// Collect implements [prometheus.Collector]: prometheus.MustRegister(hp) adds the metrics of
// METRICS.md, "In the application". A scrape reads counters and costs requests nothing. Labels
// are never values of parameters. A program with several Hotparams gives each its own labels
// by [prometheus.WrapRegistererWith].
func (h *Hotparam) Collect(to chan<- prometheus.Metric) { figure.Collect(to, figures, h.scrape()) }
