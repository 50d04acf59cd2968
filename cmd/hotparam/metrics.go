package main

import (
	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the daemon's, read when they are scraped. METRICS.md documents
// each; a parameter's value is never a label.
type metrics struct {
	agg       *aggregator.Aggregator
	publisher *hotkeys.Publisher
	others    []prometheus.Collector
}

func newMetrics(agg *aggregator.Aggregator, publisher *hotkeys.Publisher) *metrics {
	return &metrics{agg: agg, publisher: publisher, others: []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hotparam_build_info", Help: "1; the version is the label.",
			ConstLabels: prometheus.Labels{"version": readVersion().Version},
		}, func() float64 { return 1 }),
	}}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hotparam_"+name, help, labels, nil)
}

var (
	packetsDesc  = desc("statsd_packets_total", "Packets that arrived.")
	linesDesc    = desc("statsd_lines_total", "Lines that arrived, meta lines aside.")
	countsDesc   = desc("statsd_counts_total", "Lines that were counts of a rule's key.")
	rejectedDesc = desc("statsd_rejected_total", "DATA LOSS: lines that were no counts, by reason.", "reason")
	lostDesc     = desc("statsd_lost_packets_total", "DATA LOSS: packets that senders sent and that never arrived.")
	foundDesc    = desc("statsd_recovered_packets_total", "Packets that were counted as lost and arrived after all.")
	twiceDesc    = desc("statsd_duplicate_packets_total", "Packets that arrived twice and were counted once.")
	agedDesc     = desc("statsd_aged_total", "Counts that instances held back until they were older than any window.")
	originsDesc  = desc("statsd_origins_total", "Lines that told the routes and callers of hot keys.")
	sendersDesc  = desc("statsd_senders", "Instances heard of lately.")

	keysDesc    = desc("keys", "Keys with a count of their own.")
	hotDesc     = desc("hot_keys", "Keys that are hot and listed.")
	explDesc    = desc("explained_keys", "Keys that are hot for no other reason than one that is listed.")
	suspectDesc = desc("suspect_keys", "Keys that may be hot and cannot be told yet.")
	unnamedDesc = desc("unnamed_counts_total", "DATA LOSS: counts of keys that were hot and had no room for their name.")
	memoryDesc  = desc("window_bytes", "Bytes that the windows hold.")
	evictedDesc = desc("evicted_keys_total", "Keys that made room for others when the memory budget was full.")
	lateDesc    = desc("late_counts_total", "DATA LOSS: counts that came too late for any window.")
	floorDesc   = desc("floor", "The most that can be hidden of any key in its window.")

	publishedDesc = desc("published_keys", "Keys in Redis that are this daemon's.")
	overflowDesc  = desc("published_overflow_total", "DATA LOSS: hot keys that found the published set full.")
	refusedDesc   = desc("published_refused_total", "DATA LOSS: hot keys and suspects that no watcher could read.")
	suspectsDesc  = desc("published_suspects", "Suspects in Redis that are this daemon's.")
	unlistedDesc  = desc("published_suspects_overflow_total", "DATA LOSS: suspects that found their set full.")
	instancesDesc = desc("published_instances", "Instances that this daemon told to send counts.")
	changesDesc   = desc("published_changes_total", "Changes of the set written to Redis.")
	renewalsDesc  = desc("published_renewals_total", "Renewals of the entries' ends.")
	rewritesDesc  = desc("published_rewrites_total", "Times the whole set was written, because Redis had lost it.")
	failuresDesc  = desc("redis_failures_total", "Calls to Redis that failed.")
	connectedDesc = desc("redis_connected", "1 if the last call to Redis did not fail.")
	fencedDesc    = desc("fenced", "1 if another daemon publishes in our place.")
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	flag := func(d *prometheus.Desc, v bool) {
		if v {
			gauge(d, 1)
		} else {
			gauge(d, 0)
		}
	}
	stats := m.agg.Stats()
	d := stats.Decoder
	counter(packetsDesc, d.Packets)
	counter(linesDesc, d.Lines)
	counter(countsDesc, d.Counts)
	counter(rejectedDesc, d.Malformed, "malformed")
	counter(rejectedDesc, d.Foreign, "foreign")
	counter(rejectedDesc, d.NotCounter, "not_counter")
	counter(rejectedDesc, d.Negative, "negative")
	counter(rejectedDesc, d.BadKey, "bad_key")
	counter(rejectedDesc, d.NoRule, "no_rule")
	counter(lostDesc, d.LostPackets)
	counter(foundDesc, d.Recovered)
	counter(twiceDesc, d.Duplicates)
	counter(agedDesc, d.Aged)
	counter(originsDesc, d.Origins)
	gauge(sendersDesc, d.Senders)

	counter(evictedDesc, stats.Detector.Evicted)
	counter(lateDesc, stats.Detector.Late)
	gauge(keysDesc, stats.Detector.Keys)
	gauge(hotDesc, stats.Detector.Hot)
	gauge(explDesc, stats.Detector.Explained)
	gauge(suspectDesc, stats.Detector.Suspects)
	counter(unnamedDesc, stats.Detector.Unnamed)
	gauge(memoryDesc, stats.Detector.Memory)
	gauge(floorDesc, stats.Detector.Floor)

	p := m.publisher.Stats()
	gauge(publishedDesc, int64(p.Keys))
	counter(overflowDesc, int64(p.Overflow))
	counter(refusedDesc, int64(p.Refused))
	gauge(suspectsDesc, int64(p.Suspects))
	counter(unlistedDesc, int64(p.SuspectsOverflow))
	gauge(instancesDesc, int64(p.Instances))
	counter(changesDesc, int64(p.Changes))
	counter(renewalsDesc, int64(p.Renewals))
	counter(rewritesDesc, int64(p.Rewrites))
	counter(failuresDesc, int64(p.Failures))
	flag(connectedDesc, p.Connected)
	flag(fencedDesc, p.Fenced)

	for _, other := range m.others {
		other.Collect(ch)
	}
}
