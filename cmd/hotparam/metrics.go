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
	samples(ch).http(m.server.Stats())
	for _, other := range m.others {
		other.Collect(ch)
	}
}

// samples takes the values of one scrape.
type samples chan<- prometheus.Metric

func (s samples) counter(d *prometheus.Desc, v int64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (s samples) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hotparam_"+name, help, labels, nil)
}

// decoderDescs are what a source tells of what arrived, in units of its own.
type decoderDescs struct {
	units, lines, counts, counted, rejected, lost, found, healed, retold, twice, aged, origins, heldBack, written, samples, senders, late, off, offset, refused *prometheus.Desc
}

// newDecoderDescs names the metrics by source and unit ("packets").
func newDecoderDescs(source, unit string) decoderDescs {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return desc(source+"_"+name, help, labels...)
	}
	return decoderDescs{
		units:    of(unit+"_total", "What arrived: "+unit+"."),
		lines:    of("lines_total", "Lines that arrived, meta lines aside."),
		counts:   of("counts_total", "Lines that were counts of a rule's key."),
		counted:  of("counted_total", "What the counts add up to."),
		rejected: of("rejected_total", "DATA LOSS: lines that were no counts, by reason.", "reason"),
		lost:     of("lost_"+unit+"_total", "DATA LOSS: "+unit+" that senders sent and that never arrived."),
		found:    of("recovered_"+unit+"_total", "What was counted as lost and arrived after all."),
		healed:   of("healed_total", "Counts of what was lost that later lines of the same keys made up for."),
		retold:   of("retold_total", "Of these, those that arrived after all, and were not counted again."),
		twice:    of("duplicate_"+unit+"_total", "What arrived twice and was counted once."),
		aged:     of("aged_total", "Counts that instances held back until they were older than any window."),
		origins:  of("origins_total", "Lines that told the routes and callers of hot keys."),
		heldBack: of("held_back_total", "Lines that told what is held back of a group of keys."),
		written:  of("uncanonical_total", "Counts of other programs whose keys were not canonical, and were made so."),
		samples:  of("samples_total", "Counts that are estimates, as they were sampled."),
		refused:  of("refused_"+unit+"_total", "DATA LOSS: "+unit+" that were not believed, or over a cap, by reason.", "reason"),
		senders:  of("senders", "Instances heard of lately."),
		late:     of("late_senders", "Of these, those whose counts come over two seconds late."),
		off:      of("off_clocks", "Of these, those whose clocks are off by more than a quarter of a second."),
		offset:   of("clock_offset_seconds", "By how much the clock that is off by most is behind; negative, it is ahead."),
	}
}

func (c *decoderDescs) collect(s samples, d *decode.Stats) {
	s.counter(c.units, d.Packets)
	s.counter(c.lines, d.Lines)
	s.counter(c.counts, d.Counts)
	s.counter(c.counted, d.Sum)
	s.counter(c.rejected, d.Malformed, "malformed")
	s.counter(c.rejected, d.Foreign, "foreign")
	s.counter(c.rejected, d.NotCounter, "not_counter")
	s.counter(c.rejected, d.Negative, "negative")
	s.counter(c.rejected, d.BadKey, "bad_key")
	s.counter(c.rejected, d.NoRule, "no_rule")
	s.counter(c.lost, d.LostPackets)
	s.counter(c.found, d.Recovered)
	s.counter(c.healed, d.Healed)
	s.counter(c.retold, d.Retold)
	s.counter(c.twice, d.Duplicates)
	s.counter(c.aged, d.Aged)
	s.counter(c.origins, d.Origins)
	s.counter(c.heldBack, d.HeldBack)
	s.counter(c.written, d.Uncanonical)
	s.counter(c.samples, d.Samples)
	for why := range decode.Refusal(decode.Refusals) {
		s.counter(c.refused, d.Refused[why], why.String())
	}
	s.gauge(c.senders, float64(d.Senders))
	s.gauge(c.late, float64(d.Late.N))
	s.gauge(c.off, float64(d.Off.N))
	s.gauge(c.offset, d.Off.Worst.Behind.Seconds())
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

// detector gives the figures of the windows.
func (s samples) detector(d *aggregator.DetectorStats) {
	collect(s, detectorMetrics, d)
}

var (
	waitingDesc  = desc("published_waiting_keys", "Hot keys that are not published, as the set is full, by rule.", "rule")
	overflowDesc = desc("published_overflow_total", "DATA LOSS: times that a hot key found no place in the published set, or lost its own, by rule.", "rule")
	healedDesc   = desc("redis_healed_total", "Times that a key of ours in Redis held what is not ours and was put right.", "key")
)

// publisherMetrics are of what is published.
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
}

// publisher gives the figures of what is published.
func (s samples) publisher(p hotkeys.PublisherStats) {
	collect(s, publisherMetrics, &p)
	for rule, of := range p.Rules {
		s.gauge(waitingDesc, float64(of.Waiting), rule)
		s.counter(overflowDesc, int64(of.Overflow), rule)
	}
	for key, n := range p.Healed.All() {
		s.counter(healedDesc, int64(n), key)
	}
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

// http gives the figures of the server that serves them.
func (s samples) http(h httpserve.Stats) {
	collect(s, httpMetrics, &h)
}
