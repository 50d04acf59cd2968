package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/httpserve"
)

// metrics are the daemon's, read when they are scraped. METRICS.md documents
// each; a parameter's value is never a label.
type metrics struct {
	pipeline pipeline
	server   *httpserve.Server
	others   []prometheus.Collector
}

func newMetrics(p pipeline, server *httpserve.Server) *metrics {
	return &metrics{pipeline: p, server: server, others: []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hotparam_build_info", Help: "1; the version is the label.",
			ConstLabels: prometheus.Labels{"version": readVersion().Version},
		}, func() float64 { return 1 }),
	}}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.pipeline.collect(ch)
	collect(ch, httpMetrics, m.server.Stats())
	for _, other := range m.others {
		other.Collect(ch)
	}
}

// decoderMetrics returns the metrics of what arrived at a source. Their names begin with
// the source; unit is what lines arrive in, "packets".
func decoderMetrics(source, unit string) []figure[decode.Stats] {
	name := func(s string) string { return source + "_" + s }
	return []figure[decode.Stats]{
		counterOf(name(unit+"_total"), "What arrived: "+unit+".",
			func(d *decode.Stats) int64 { return d.Packets }),
		counterOf(name("lines_total"), "Lines that arrived, meta lines aside.",
			func(d *decode.Stats) int64 { return d.Lines }),
		counterOf(name("counts_total"), "Lines that were counts of a rule's key.",
			func(d *decode.Stats) int64 { return d.Counts }),
		counterOf(name("counted_total"), "What the counts add up to.",
			func(d *decode.Stats) int64 { return d.Sum }),
		countersBy(name("rejected_total"), "DATA LOSS: lines that were no counts, by reason.", "reason",
			func(d *decode.Stats, emit func(string, int64)) {
				emit("malformed", d.Malformed)
				emit("foreign", d.Foreign)
				emit("not_counter", d.NotCounter)
				emit("negative", d.Negative)
				emit("bad_key", d.BadKey)
				emit("no_rule", d.NoRule)
			}),
		counterOf(name("lost_"+unit+"_total"), "DATA LOSS: "+unit+" that senders sent and that never arrived.",
			func(d *decode.Stats) int64 { return d.LostPackets }),
		counterOf(name("recovered_"+unit+"_total"), "What was counted as lost and arrived after all.",
			func(d *decode.Stats) int64 { return d.Recovered }),
		counterOf(name("healed_total"), "Counts of what was lost that later lines of the same keys made up for.",
			func(d *decode.Stats) int64 { return d.Healed }),
		counterOf(name("retold_total"), "Of these, those that arrived after all, and were not counted again.",
			func(d *decode.Stats) int64 { return d.Retold }),
		counterOf(name("duplicate_"+unit+"_total"), "What arrived twice and was counted once.",
			func(d *decode.Stats) int64 { return d.Duplicates }),
		counterOf(name("aged_total"), "Counts that instances held back until they were older than any window.",
			func(d *decode.Stats) int64 { return d.Aged }),
		counterOf(name("origins_total"), "Lines that told the routes and callers of hot keys.",
			func(d *decode.Stats) int64 { return d.Origins }),
		counterOf(name("held_back_total"), "Lines that told what is held back of a group of keys.",
			func(d *decode.Stats) int64 { return d.HeldBack }),
		counterOf(name("uncanonical_total"), "Counts of other programs whose keys were not canonical, and were made so.",
			func(d *decode.Stats) int64 { return d.Uncanonical }),
		counterOf(name("samples_total"), "Counts that are estimates, as they were sampled.",
			func(d *decode.Stats) int64 { return d.Samples }),
		countersBy(name("refused_"+unit+"_total"), "DATA LOSS: "+unit+" that were not believed, or over a cap, by reason.", "reason",
			func(d *decode.Stats, emit func(string, int64)) {
				for why := range decode.Refusal(decode.Refusals) {
					emit(why.String(), d.Refused[why])
				}
			}),
		gaugeOf(name("senders"), "Instances heard of lately.",
			func(d *decode.Stats) float64 { return float64(d.Senders) }),
		gaugeOf(name("late_senders"), "Of these, those whose counts come over two seconds late.",
			func(d *decode.Stats) float64 { return float64(d.Late.N) }),
		gaugeOf(name("off_clocks"), "Of these, those whose clocks are off by more than a quarter of a second.",
			func(d *decode.Stats) float64 { return float64(d.Off.N) }),
		gaugeOf(name("clock_offset_seconds"), "By how much the clock that is off by most is behind; negative, it is ahead.",
			func(d *decode.Stats) float64 { return d.Off.Worst.Behind.Seconds() }),
	}
}

// detectorMetrics are of the windows.
var detectorMetrics = []figure[aggregator.DetectorStats]{
	counterOf("evicted_keys_total", "Keys that made room for others when the memory budget was full.",
		func(d *aggregator.DetectorStats) int64 { return d.Evicted }),
	counterOf("late_counts_total", "DATA LOSS: counts that came too late for any window.",
		func(d *aggregator.DetectorStats) int64 { return d.Late }),
	gaugeOf("keys", "Keys with a count of their own.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Keys) }),
	gaugeOf("hot_keys", "Keys that are hot and listed.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Hot) }),
	gaugeOf("explained_keys", "Keys that are hot for no other reason than one that is listed.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Explained) }),
	gaugeOf("usual_keys", "Keys that are listed as usual.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Usual) }),
	gaugeOf("spared_keys", "Keys that are usual and not limited.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Spared) }),
	gaugeOf("suspect_keys", "Keys that may be hot and cannot be told yet.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Suspects) }),
	counterOf("unnamed_counts_total", "DATA LOSS: counts of keys that were hot and had no room for their name.",
		func(d *aggregator.DetectorStats) int64 { return d.Unnamed }),
	gaugeOf("window_bytes", "Bytes that the windows hold.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Memory) }),
	gaugeOf("floor", "The most that can be hidden of any key in its window.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Floor) }),
}

// publisherMetrics are of the published set.
var publisherMetrics = []figure[hotkeys.PublisherStats]{
	gaugeOf("published_keys", "Keys in Redis that are this daemon's.",
		func(p *hotkeys.PublisherStats) float64 { return float64(p.Keys) }),
	gaugeOf("unpublishable_keys", "Hot keys that are not published, as no watcher could read them.",
		func(p *hotkeys.PublisherStats) float64 { return float64(p.Unpublishable) }),
	counterOf("published_refused_total", "DATA LOSS: hot keys and suspects that no watcher could read.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Refused) }),
	gaugeOf("published_suspects", "Suspects in Redis that are this daemon's.",
		func(p *hotkeys.PublisherStats) float64 { return float64(p.Suspects) }),
	counterOf("published_suspects_overflow_total", "DATA LOSS: suspects that found their set full.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.SuspectsOverflow) }),
	gaugeOf("published_instances", "Instances that this daemon told to send counts.",
		func(p *hotkeys.PublisherStats) float64 { return float64(p.Instances) }),
	counterOf("published_changes_total", "Changes of the set written to Redis.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Changes) }),
	counterOf("published_renewals_total", "Renewals of the entries' ends.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Renewals) }),
	counterOf("published_rewrites_total", "Times the whole set was written, because Redis had lost it.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Rewrites) }),
	counterOf("published_unreadable_total", "Entries that were found in Redis when it was taken over, and could not be read.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Unreadable) }),
	counterOf("redis_failures_total", "Calls to Redis that failed.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Failures) }),
	flagOf("redis_connected", "1 if nothing fails that must be written to Redis.",
		func(p *hotkeys.PublisherStats) bool { return p.Connected }),
	flagOf("standby", "1 if another daemon publishes, and this one takes over when it dies.",
		func(p *hotkeys.PublisherStats) bool { return p.Standby }),
	counterOf("takeovers_total", "Times that this daemon took over from another, or with a lease came to hold it first.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Takeovers) }),
	flagOf("fenced", "1 if another daemon publishes in our place, and this one takes over when it is silent.",
		func(p *hotkeys.PublisherStats) bool { return p.FencedBy != "" }),
	gaugesBy("published_waiting_keys", "Hot keys that are not published, as the set is full, by rule.", "rule",
		func(p *hotkeys.PublisherStats, emit func(string, float64)) {
			for rule, places := range p.Rules {
				emit(rule, float64(places.Waiting))
			}
		}),
	countersBy("published_overflow_total", "DATA LOSS: times that a hot key found no place in the published set, or lost its own, by rule.", "rule",
		func(p *hotkeys.PublisherStats, emit func(string, int64)) {
			for rule, places := range p.Rules {
				emit(rule, int64(places.Overflow))
			}
		}),
	countersBy("redis_healed_total", "Times that a key of ours in Redis held what is not ours and was put right.", "key",
		func(p *hotkeys.PublisherStats, emit func(string, int64)) {
			for key, n := range p.Healed.All() {
				emit(key, int64(n))
			}
		}),
}

// httpMetrics are of the server that serves them.
var httpMetrics = []figure[httpserve.Stats]{
	gaugeOf("http_connections", "Connections of this HTTP server that are open.",
		func(h *httpserve.Stats) float64 { return float64(h.Connections) }),
	counterOf("http_evicted_connections_total", "Connections without a request that made room for others.",
		func(h *httpserve.Stats) int64 { return h.Evicted }),
	counterOf("http_refused_connections_total", "Connections that were closed at once, as all had requests.",
		func(h *httpserve.Stats) int64 { return h.Refused }),
	counterOf("http_accept_failures_total", "Times that there was no file descriptor for a connection.",
		func(h *httpserve.Stats) int64 { return h.Starved }),
}
