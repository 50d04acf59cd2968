package benchmarks

import (
	"bytes"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/event"
	"github.com/prometheus/statsd_exporter/pkg/exporter"
	"github.com/prometheus/statsd_exporter/pkg/line"
	"github.com/prometheus/statsd_exporter/pkg/mapper"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/rules"
)

const perPacket = 20 // lines

const (
	linePrefix = "shop.terms.hot_param."
	lineSuffix = ":1|c"
)

// BenchmarkParse reads lines and adds up their counts, and keeps no key. An operation is a line.
// Allocations are per packet of 20 lines.
func BenchmarkParse(b *testing.B) {
	packets := packetsOf(texts("b=2&q=%d", zipf(distinct)))
	b.Run("hotparam", func(b *testing.B) {
		d := decode.NewDecoder(testRules(b, "*", unreachable, nil), wire.Plain)
		var sum total
		now := time.Now()
		ingest(b, packets, func(p []byte) { d.Packet(p, now, &sum) })
		wantLines(b, int64(sum))
	})
	b.Run("minimal", func(b *testing.B) {
		var sum int64
		ingest(b, packets, func(p []byte) {
			minimal(p, func(_ []byte, n int64) { sum += n })
		})
		wantLines(b, sum)
	})
	b.Run("statsd_exporter", func(b *testing.B) {
		e := newExporter(b)
		var sum float64
		ingest(b, packets, func(p []byte) {
			e.lines(p, func(events event.Events) {
				for _, ev := range events {
					sum += ev.Value()
				}
			})
		})
		wantLines(b, int64(sum))
	})
}

// BenchmarkIngest reads lines and counts them by key: 100,000 keys by Zipf's law.
func BenchmarkIngest(b *testing.B) {
	packets := packetsOf(texts("b=2&q=%d", zipf(distinct)))
	count(b, packets)
	b.Run("statsd_exporter", func(b *testing.B) {
		e := newExporter(b)
		events, done := make(chan event.Events), make(chan struct{})
		go func() { e.exporter.Listen(events); close(done) }()
		ingest(b, packets, func(p []byte) {
			var batch event.Events
			e.lines(p, func(one event.Events) { batch = append(batch, one...) })
			events <- batch
		})
		close(events)
		<-done
	})
}

// BenchmarkIngestDistinct does the same with 1,048,576 distinct keys, one after the other.
// statsd_exporter is left out, since it would take some 2 GB.
func BenchmarkIngestDistinct(b *testing.B) {
	numbers := make([]uint64, 1<<20)
	for i := range numbers {
		numbers[i] = uint64(i)
	}
	count(b, packetsOf(texts("b=2&q=%d", numbers)))
}

// count counts by key. The project's detector has a window of 10 s and bounds for its counts, and
// the others count forever. The detector's clock runs at 1,000,000 lines a second. MB is the size
// of the counts at the end.
func count(b *testing.B, packets [][]byte) {
	b.Run("hotparam", func(b *testing.B) {
		before := heap()
		r := testRules(b, "*", rules.Rate{N: 9 * rules.MaxRate, Per: 10 * time.Second}, nil)
		decoder := decode.NewDecoder(r, wire.Plain)
		detector := aggregator.NewDetector(aggregator.DetectorConfig{Rules: r, Publisher: &reported{}, Lag: decode.DefaultLag})
		now := time.Now()
		n := 0
		ingest(b, packets, func(p []byte) {
			now = now.Add(perPacket * time.Microsecond)
			if n++; n%(1000/perPacket) == 0 {
				detector.Advance(now)
			}
			decoder.Packet(p, now, detector)
		})
		s := detector.Stats()
		if s.Memory > aggregator.DefaultMemory || s.Late > 0 {
			b.Errorf("%+v", s)
		}
		wantLines(b, decoder.Stats().Counts)
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB")
		b.ReportMetric(float64(s.Evicted), "evicted")
		runtime.KeepAlive(detector)
	})
	b.Run("minimal_+_map", func(b *testing.B) {
		before := heap()
		counts := make(map[string]*int64)
		var sum int64
		ingest(b, packets, func(p []byte) {
			minimal(p, func(key []byte, n int64) {
				c, ok := counts[string(key)]
				if !ok {
					c = new(int64)
					counts[string(key)] = c
				}
				*c += n
			})
		})
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB")
		for _, n := range counts {
			sum += *n
		}
		wantLines(b, sum)
	})
}

// packetsOf returns packets with lines of the keys.
func packetsOf(keys []string) [][]byte {
	var packets [][]byte
	for len(keys) >= perPacket {
		var p []byte
		for i, key := range keys[:perPacket] {
			if i > 0 {
				p = append(p, '\n')
			}
			p = append(append(append(p, linePrefix...), key...), lineSuffix...)
		}
		packets = append(packets, p)
		keys = keys[perPacket:]
	}
	return packets
}

// ingest measures the time per packet and reports it per line. All packets are taken in once
// before, so that the measured keys are known ones.
func ingest(b *testing.B, packets [][]byte, take func(packet []byte)) {
	for _, p := range packets {
		take(p)
	}
	warm = int64(len(packets) * perPacket)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		take(packets[i%len(packets)])
	}
	lines := float64(b.N) * perPacket
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/lines, "ns/op")
	b.ReportMetric(lines/1e6/b.Elapsed().Seconds(), "Mlines/s")
}

// warm is the number of lines before the measurement.
var warm int64

func wantLines(b *testing.B, got int64) {
	b.Helper()
	if want := warm + int64(b.N)*perPacket; got != want {
		b.Errorf("%d lines of %d were counted", got, want)
	}
}

// minimal calls f for each line of a packet. It does the least work that any reader must do.
func minimal(packet []byte, f func(key []byte, n int64)) {
	for len(packet) > 0 {
		key, n, rest, ok := yardstick.CutLine(packet, len(linePrefix))
		if packet = rest; ok {
			f(key, n)
		}
	}
}

// total is a handler that adds up counts.
type total int64

func (t *total) Count(c decode.Count)                             { *t += total(c.N) }
func (*total) AddHiddenCounts(time.Time, int64)                   {}
func (*total) RecordLoss(time.Time)                               {}
func (*total) ReduceLoss(time.Time)                               {}
func (*total) RecordGap(decode.Gap)                               {}
func (*total) ExcludeFromGap(uint64, int, uint64, bool)           {}
func (*total) AddHealedCount(decode.Count, time.Time)             {}
func (*total) MoveHealedCount(decode.Count, time.Time, time.Time) {}

// statsdExporter handles a line like the daemon, without the daemon.
type statsdExporter struct {
	parser                                   *line.Parser
	exporter                                 *exporter.Exporter
	errors                                   *prometheus.CounterVec
	samplesReceived, tagErrors, tagsReceived prometheus.Counter
	log                                      *slog.Logger
}

func newExporter(b *testing.B) *statsdExporter {
	b.Helper()
	counter := func() prometheus.Counter { return prometheus.NewCounter(prometheus.CounterOpts{Name: "n"}) }
	vec := func(labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "n"}, labels)
	}
	e := &statsdExporter{
		parser: line.NewParser(), errors: vec("reason"),
		samplesReceived: counter(), tagErrors: counter(), tagsReceived: counter(), log: slog.New(slog.DiscardHandler),
	}
	m := &mapper.MetricMapper{Logger: e.log}
	if err := m.InitFromYAMLString(""); err != nil {
		b.Fatal(err)
	}
	gauges := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "n"}, []string{"type"})
	e.exporter = exporter.NewExporter(prometheus.NewRegistry(), m, e.log,
		vec("action"), counter(), vec("reason"), vec("type"), vec("type"), gauges)
	return e
}

func (e *statsdExporter) lines(packet []byte, f func(event.Events)) {
	for l := range bytes.SplitSeq(packet, []byte{'\n'}) {
		f(e.parser.LineToEvents(string(l), *e.errors, e.samplesReceived, e.tagErrors, e.tagsReceived, e.log))
	}
}

func (*total) SetHeldBackBound(int, int64, int64) {}

func (*total) AddHeldBack(decode.HeldBack) {}
