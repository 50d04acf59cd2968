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

func (s samples) flag(d *prometheus.Desc, v bool) {
	if v {
		s.gauge(d, 1)
	} else {
		s.gauge(d, 0)
	}
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

var (
	keysDesc    = desc("keys", "Keys with a count of their own.")
	hotDesc     = desc("hot_keys", "Keys that are hot and listed.")
	explDesc    = desc("explained_keys", "Keys that are hot for no other reason than one that is listed.")
	usualDesc   = desc("usual_keys", "Keys that are listed as usual.")
	sparedDesc  = desc("spared_keys", "Keys that are usual and not limited.")
	suspectDesc = desc("suspect_keys", "Keys that may be hot and cannot be told yet.")
	unnamedDesc = desc("unnamed_counts_total", "DATA LOSS: counts of keys that were hot and had no room for their name.")
	memoryDesc  = desc("window_bytes", "Bytes that the windows hold.")
	evictedDesc = desc("evicted_keys_total", "Keys that made room for others when the memory budget was full.")
	lateDesc    = desc("late_counts_total", "DATA LOSS: counts that came too late for any window.")
	floorDesc   = desc("floor", "The most that can be hidden of any key in its window.")
)

// detector gives the figures of the windows.
func (s samples) detector(d *aggregator.DetectorStats) {
	s.counter(evictedDesc, d.Evicted)
	s.counter(lateDesc, d.Late)
	s.gauge(keysDesc, float64(d.Keys))
	s.gauge(hotDesc, float64(d.Hot))
	s.gauge(explDesc, float64(d.Explained))
	s.gauge(usualDesc, float64(d.Usual))
	s.gauge(sparedDesc, float64(d.Spared))
	s.gauge(suspectDesc, float64(d.Suspects))
	s.counter(unnamedDesc, d.Unnamed)
	s.gauge(memoryDesc, float64(d.Memory))
	s.gauge(floorDesc, float64(d.Floor))
}

var (
	publishedDesc  = desc("published_keys", "Keys in Redis that are this daemon's.")
	waitingDesc    = desc("published_waiting_keys", "Hot keys that are not published, as the set is full, by rule.", "rule")
	overflowDesc   = desc("published_overflow_total", "DATA LOSS: times that a hot key found no place in the published set, or lost its own, by rule.", "rule")
	illegibleDesc  = desc("unpublishable_keys", "Hot keys that are not published, as no watcher could read them.")
	refusedDesc    = desc("published_refused_total", "DATA LOSS: hot keys and suspects that no watcher could read.")
	suspectsDesc   = desc("published_suspects", "Suspects in Redis that are this daemon's.")
	unlistedDesc   = desc("published_suspects_overflow_total", "DATA LOSS: suspects that found their set full.")
	instancesDesc  = desc("published_instances", "Instances that this daemon told to send counts.")
	changesDesc    = desc("published_changes_total", "Changes of the set written to Redis.")
	renewalsDesc   = desc("published_renewals_total", "Renewals of the entries' ends.")
	rewritesDesc   = desc("published_rewrites_total", "Times the whole set was written, because Redis had lost it.")
	unreadableDesc = desc("published_unreadable_total", "Entries that were found in Redis when it was taken over, and could not be read.")
	failuresDesc   = desc("redis_failures_total", "Calls to Redis that failed.")
	healedDesc     = desc("redis_healed_total", "Times that a key of ours in Redis held what is not ours and was put right.", "key")
	connectedDesc  = desc("redis_connected", "1 if nothing fails that must be written to Redis.")
	standbyDesc    = desc("standby", "1 if another daemon publishes, and this one takes over when it dies.")
	takeoversDesc  = desc("takeovers_total", "Times that this daemon took over from another, or with a lease came to hold it first.")
	fencedDesc     = desc("fenced", "1 if another daemon publishes in our place, and this one takes over when it is silent.")
)

// publisher gives the figures of what is published.
func (s samples) publisher(p hotkeys.PublisherStats) {
	s.gauge(publishedDesc, float64(p.Keys))
	for rule, of := range p.Rules {
		s.gauge(waitingDesc, float64(of.Waiting), rule)
		s.counter(overflowDesc, int64(of.Overflow), rule)
	}
	s.gauge(illegibleDesc, float64(p.Unpublishable))
	s.counter(refusedDesc, int64(p.Refused))
	s.gauge(suspectsDesc, float64(p.Suspects))
	s.counter(unlistedDesc, int64(p.SuspectsOverflow))
	s.gauge(instancesDesc, float64(p.Instances))
	s.counter(changesDesc, int64(p.Changes))
	s.counter(renewalsDesc, int64(p.Renewals))
	s.counter(rewritesDesc, int64(p.Rewrites))
	s.counter(unreadableDesc, int64(p.Unreadable))
	s.counter(failuresDesc, int64(p.Failures))
	for key, n := range p.Healed.All() {
		s.counter(healedDesc, int64(n), key)
	}
	s.flag(connectedDesc, p.Connected)
	s.flag(standbyDesc, p.Standby)
	s.counter(takeoversDesc, int64(p.Takeovers))
	s.flag(fencedDesc, p.FencedBy != "")
}

var (
	httpOpenDesc    = desc("http_connections", "Connections of this HTTP server that are open.")
	httpEvictedDesc = desc("http_evicted_connections_total", "Connections without a request that made room for others.")
	httpRefusedDesc = desc("http_refused_connections_total", "Connections that were closed at once, as all had requests.")
	httpStarvedDesc = desc("http_accept_failures_total", "Times that there was no file descriptor for a connection.")
)

// http gives the figures of the server that serves them.
func (s samples) http(h httpserve.Stats) {
	s.gauge(httpOpenDesc, float64(h.Connections))
	s.counter(httpEvictedDesc, h.Evicted)
	s.counter(httpRefusedDesc, h.Refused)
	s.counter(httpStarvedDesc, h.Starved)
}
