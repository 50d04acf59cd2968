package daemon

import (
	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/figure"
)

// decoderMetrics returns the metrics of a source's decoder. Their names begin with source. The
// unit is the noun for one delivery of lines, such as "packets".
func decoderMetrics(source, unit string) []figure.Figure[decode.Stats] {
	name := func(s string) string { return source + "_" + s }
	return []figure.Figure[decode.Stats]{
		figure.Counter(name(unit+"_total"), "What arrived: "+unit+".",
			func(d *decode.Stats) int64 { return d.Packets }).
			Explain(unit + " that arrived"),
		figure.Counter(name("lines_total"), "Lines that arrived, meta lines aside.",
			func(d *decode.Stats) int64 { return d.Lines }),
		figure.Counter(name("counts_total"), "Lines that were counts of a rule's key.",
			func(d *decode.Stats) int64 { return d.Counts }),
		figure.Counter(name("counted_total"), "Sum of the counts.",
			func(d *decode.Stats) int64 { return d.Sum }),
		figure.CountersBy(name("rejected_total"), "DATA LOSS: lines that are not counts, by reason.", "reason",
			func(d *decode.Stats, emit func(string, int64)) {
				emit("malformed", d.Malformed)
				emit("foreign", d.Foreign)
				emit("not_counter", d.NotCounter)
				emit("negative", d.Negative)
				emit("bad_key", d.BadKey)
				emit("no_rule", d.NoRule)
			}).
			Explain("lines that are not counts: `malformed`; `foreign` (some other metric, such as a client's own " +
				"telemetry: no harm); `not_counter` (a gauge, a timer); `negative`; `bad_key` (an escape unknown to " +
				"the encoding: compare `statsd.encoding` with the senders); `no_rule` (no rule has this prefix: " +
				"compare the rules of sender and aggregator)"),
		figure.Counter(name("lost_"+unit+"_total"), "DATA LOSS: "+unit+" that were sent and never arrived.",
			func(d *decode.Stats) int64 { return d.LostPackets }).
			Explain("gaps in the senders' sequences. The next packet states how many counts they had. High counts are " +
				"higher by that until later lines of the same keys carry the lost counts, or the window has passed. With " +
				"senders of an earlier version, high counts are unknown, and no key cools"),
		figure.Counter(name("recovered_"+unit+"_total"), "Counts that were taken as lost and arrived late: "+unit+".",
			func(d *decode.Stats) int64 { return d.Recovered }).
			Explain(unit + " that were taken as lost and arrived late"),
		figure.Counter(name("healed_total"), "Lost counts that later lines of the same keys carried.",
			func(d *decode.Stats) int64 { return d.Healed }),
		figure.Counter(name("retold_total"), "Healed counts that arrived late, and were not counted again.",
			func(d *decode.Stats) int64 { return d.Retold }).
			Explain("healed counts whose packets arrived late: they were moved to their time, and not counted again"),
		figure.Counter(name("duplicate_"+unit+"_total"), "Duplicates, counted once: "+unit+".",
			func(d *decode.Stats) int64 { return d.Duplicates }).
			Explain(unit + " that arrived twice and were counted once"),
		figure.Counter(name("aged_total"), "Counts that instances held back until they were older than any window, or dropped with their key.",
			func(d *decode.Stats) int64 { return d.Aged }).
			Explain("counts that instances held back, under their budget of lines, until they were older than any " +
				"window, or dropped with their keys for lack of room: they are in no key's count"),
		figure.Counter(name("origins_total"), "Lines with the routes and callers of hot keys.",
			func(d *decode.Stats) int64 { return d.Origins }),
		figure.Counter(name("held_back_total"), "Lines that report how many counts of a group of keys instances hold back.",
			func(d *decode.Stats) int64 { return d.HeldBack }).
			Explain("lines that report how many counts of a group of keys instances hold back, which thresholds of a " +
				"share need; many of them indicate a flood of new keys"),
		figure.Counter(name("uncanonical_total"), "Counts of other programs whose keys were not canonical, and were made so.",
			func(d *decode.Stats) int64 { return d.Uncanonical }).
			Explain("counts of [other programs](docs/PRODUCERS.md) whose keys were not canonical (parameters out of " +
				"order, other escapes), and were counted in canonical form"),
		figure.Counter(name("samples_total"), "Counts that are estimates, as they were sampled.",
			func(d *decode.Stats) int64 { return d.Samples }).
			Explain("counts that came with a rate (`@0.1`): keys are judged by the estimate of their samples, and listed " +
				"as `estimated`"),
		figure.CountersBy(name("refused_"+unit+"_total"), "DATA LOSS: "+unit+" that were not trusted, or over a cap, by reason.", "reason",
			func(d *decode.Stats, emit func(string, int64)) {
				for why := range decode.PacketRefusal(decode.Refusals) {
					emit(why.String(), d.Refused[why])
				}
			}).
			Explain("packets that were [not trusted](docs/SECURITY.md) and dropped: a loss if the sender is yours. With " +
				"`trust: listed`: `unlisted` (connections, too). With `trust: signed`: `unsigned`; `bad_mac` (by " +
				"another key, or changed on the way); `time` (send time over 30 s off: check the clock; the log " +
				"names the instance); `replayed` (a duplicate, perhaps by the network). Over a " +
				"[cap](docs/RULES.md#aggregator): `counts`, `keys`, `names`. The log has the address, and `/-/ready` " +
				"shows it for a minute"),
		figure.Gauge(name("senders"), "Instances that sent counts in the last minute.",
			func(d *decode.Stats) float64 { return float64(d.Senders) }),
		figure.Gauge(name("late_senders"), "Instances whose counts arrive over two seconds late.",
			func(d *decode.Stats) float64 { return float64(d.Late.N) }).
			Explain("instances with all counts over two seconds old on arrival: the network delays them or, without send " +
				"times, the clock is slow. `/-/ready` names the latest"),
		figure.Gauge(name("off_clocks"), "Instances whose clocks are off by more than a quarter of a second.",
			func(d *decode.Stats) float64 { return float64(d.Off.N) }).
			Explain("instances whose clocks are wrong by more than a quarter of a second. Their counts are " +
				"[corrected](docs/design/aggregator.md#clocks). `/-/ready` names the worst, and the log names each: " +
				"run chrony or another NTP client there"),
		figure.Gauge(name("clock_offset_seconds"), "Offset of the worst clock; positive if it is behind, negative if it is ahead.",
			func(d *decode.Stats) float64 { return d.Off.Worst.Behind.Seconds() }),
	}
}

// detectorMetrics are the metrics of the windows.
var detectorMetrics = []figure.Figure[aggregator.DetectorStats]{
	figure.Gauge("keys", "Keys with a count of their own.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Keys) }),
	figure.Gauge("hot_keys", "Keys that are hot and listed.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Hot) }),
	figure.Gauge("explained_keys", "Hot keys that are explained by a more general key, which is listed instead.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Explained) }),
	figure.Gauge("usual_keys", "Keys that are listed as usual.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Usual) }).
		Explain("hot keys that are listed as usual: on nine tenths of their route's requests, or not far above their " +
			"mean of ten windows"),
	figure.Gauge("spared_keys", "Usual keys that are not limited, because other listed hot keys explain the unusual traffic.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Spared) }),
	figure.Gauge("suspect_keys", "Keys that may be hot, because hidden counts could reach the threshold.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Suspects) }),
	figure.Counter("unnamed_counts_total", "DATA LOSS: counts of keys that were hot and had no room for their name.",
		func(d *aggregator.DetectorStats) int64 { return d.NoRoom }).
		Explain("counts of keys that were hot and had no room for their name: `aggregator.memory` is too small"),
	figure.Gauge("window_bytes", "Bytes that the windows hold.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Memory) }).
		Explain("bytes that the windows hold; bounded by `aggregator.memory`"),
	figure.Counter("evicted_keys_total", "Keys that were evicted when the memory budget was full; their counts are in the bounds of the others.",
		func(d *aggregator.DetectorStats) int64 { return d.Evicted }),
	figure.Counter("late_counts_total", "DATA LOSS: counts that came too late for any window.",
		func(d *aggregator.DetectorStats) int64 { return d.Late }).
		Explain("counts that arrived too late for any window: delayed by over two seconds, or from a slow " +
			"[clock](docs/design/aggregator.md#clocks) that was not known yet"),
	figure.Gauge("floor", "Largest count that can be hidden of any key in its window; 0 while counts are exact.",
		func(d *aggregator.DetectorStats) float64 { return float64(d.Floor) }),
}

// publisherMetrics are the metrics of the published set.
var publisherMetrics = []figure.Figure[hotkeys.PublisherStats]{
	figure.Gauge("published_keys", "Keys in Redis that this aggregator owns.",
		func(p *hotkeys.PublisherStats) float64 { return float64(p.Keys) }),
	figure.Gauge("unpublishable_keys", "Hot keys that are not published, because no watcher could read them.",
		func(p *hotkeys.PublisherStats) float64 { return float64(p.Unpublishable) }),
	figure.Counter("published_refused_total", "DATA LOSS: hot keys and suspects that no watcher could read.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Refused) }),
	figure.Gauge("published_suspects", "Suspects in Redis that this aggregator owns: keys that may be hot.",
		func(p *hotkeys.PublisherStats) float64 { return float64(p.Suspects) }),
	figure.Counter("published_suspects_overflow_total", "DATA LOSS: suspects without a place, because their set was full.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.SuspectsOverflow) }).
		Explain("suspects without a place, because their set was full (1,000 keys, with an equal part for each rule): collectors do " +
			"not send them exactly"),
	figure.Gauge("published_instances", "Instances that sent counts in the last 10 seconds, as this aggregator published.",
		func(p *hotkeys.PublisherStats) float64 { return float64(p.Instances) }),
	figure.Counter("published_changes_total", "Changes of the set written to Redis.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Changes) }),
	figure.Counter("published_renewals_total", "Renewals of the entries' ends, one a second.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Renewals) }),
	figure.Counter("published_rewrites_total", "Times that the whole set was written because Redis had lost it.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Rewrites) }),
	figure.Counter("published_unreadable_total", "Entries that were found in Redis when a part of the set was taken over, and could not be read.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Unreadable) }),
	figure.Counter("redis_failures_total", "Calls to Redis that failed.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Failures) }),
	figure.Flag("redis_connected", "1 if no required write to Redis fails.",
		func(p *hotkeys.PublisherStats) bool { return p.Connected }).
		Explain("1 if no required write to Redis fails; `/-/ready` says which does"),
	figure.Flag("standby", "1 if another aggregator publishes under the lease; this one takes over when it dies.",
		func(p *hotkeys.PublisherStats) bool { return p.Standby }),
	figure.Counter("takeovers_total", "Times that this aggregator took over from standby; with a lease the first time counts, too.",
		func(p *hotkeys.PublisherStats) int64 { return int64(p.Takeovers) }),
	figure.Flag("fenced", "1 if another aggregator publishes under the same name; this one takes over when it is silent.",
		func(p *hotkeys.PublisherStats) bool { return p.FencedBy != "" }).
		Explain("1 if another aggregator publishes under the same name. This one takes over when the other ends or " +
			"is silent. `/-/ready` names it"),
	figure.GaugesBy("published_waiting_keys", "Hot keys that are not published, because the set is full, by rule.", "rule",
		func(p *hotkeys.PublisherStats, emit func(string, float64)) {
			for rule, places := range p.Rules {
				emit(rule, float64(places.Waiting))
			}
		}).
		Explain("hot keys that are not published, and so not limited, because [all " +
			"places](docs/design/redis.md#places) of the set are taken. `/-/ready` names the rules"),
	figure.CountersBy("published_overflow_total", "DATA LOSS: times that a hot key found no place in the published set (1,000 for each owner), or lost its own.", "rule",
		func(p *hotkeys.PublisherStats, emit func(string, int64)) {
			for rule, places := range p.Rules {
				emit(rule, int64(places.Overflow))
			}
		}),
	figure.CountersBy("redis_healed_total", "Repairs of our keys in Redis that held foreign values.", "key",
		func(p *hotkeys.PublisherStats, emit func(string, int64)) {
			for key, n := range p.Healed.All() {
				emit(key, int64(n))
			}
		}).
		Explain("repairs of our keys in Redis that held a foreign value, of a wrong type or unreadable: `hot`, " +
			"`info`, `version`, `owners`, `events`, `schema`, `suspects`, `instances`. Above 0, another program " +
			"writes to keys of this namespace"),
}
