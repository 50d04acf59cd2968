package bench

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// lineStream is a source of lines for [Detect].
type lineStream interface {
	// fill adds the lines of the current pane to a batch, up to its capacity. It reports false
	// with the last lines.
	fill(*packetBatch) (more bool, err error)
	progress() (done, total int64)
}

// packetBatch holds lines in packets. All lines of a packet have the same time.
type packetBatch struct {
	text   []byte
	ends   []int   // ends of the packets in text
	times  []int64 // times of the packets, in nanoseconds since the Unix epoch
	lines  int     // number of lines in the last packet
	events int
}

// maxBatch is the capacity of a batch in events.
const maxBatch = 1 << 20

func (b *packetBatch) reset() {
	b.text, b.ends, b.times, b.lines, b.events = b.text[:0], b.ends[:0], b.times[:0], 0, 0
}

// add adds a line at a time. If fill is set and the last packet is not full, the line joins it
// and takes its time.
func (b *packetBatch) add(nanos int64, fill bool, prefix string, key []byte) {
	last := len(b.times) - 1
	if last >= 0 && b.lines < linesPerPacket && (fill || b.times[last] == nanos) {
		b.text = append(b.text, '\n')
	} else {
		b.ends, b.times, b.lines = append(b.ends, 0), append(b.times, nanos), 0
		last++
	}
	b.text = append(wire.AppendKey(append(b.text, prefix...), wire.Plain, key), ":1|c"...)
	b.ends[last] = len(b.text)
	b.lines++
	b.events++
}

func (b *packetBatch) each(f func(packet []byte, sent time.Time)) {
	start := 0
	for i, end := range b.ends {
		f(b.text[start:end], time.Unix(0, b.times[i]))
		start = end
	}
}

func (c *DetectConfig) stream(ctx context.Context, w rules.Window) (_ lineStream, close func(), _ error) {
	rule := &c.Rules.Rules[0]
	prefix := rule.CountPrefix(c.Rules.Namespace)
	if c.Generate != nil {
		return &generated{
			Generate: *c.Generate, prefix: prefix, pane: int64(w.Pane), window: rule.Hot[0].Rate.Per,
			zipf: yardstick.NewZipf(yardstick.NewRand(c.Generate.Seed), c.Generate.Zipf, c.Generate.Keys),
		}, func() {}, nil
	}
	l := &logged{prefix: prefix, pane: int64(w.Pane), log: c.Log}
	var err error
	if l.counts, err = collector.New(collector.Config{Sink: l, Rules: c.Rules, Budget: -1}); err != nil {
		return nil, nil, err
	}
	if l.guard, err = middleware.New(c.Rules, l.counts, middleware.WithoutLocal()); err != nil {
		return nil, nil, err
	}
	next, stop := iter.Pull2(c.Log.Entries(ctx))
	l.next = next
	return l, stop, nil
}

// generated is a stream by Zipf's law, with events evenly spread over each window. Twenty events
// share a packet, and therefore a time.
type generated struct {
	Generate
	prefix string
	pane   int64
	window time.Duration
	zipf   *yardstick.Zipf
	done   int64
	key    []byte
}

// streamStart is the start of the clock of generated streams.
const streamStart = 1_700_000_000 * int64(time.Second)

func (g *generated) total() int64 { return int64(g.Windows) * int64(g.Events) }

// eventTime returns the time of event i.
func (g *generated) eventTime(i int64) int64 {
	window, event := i/int64(g.Events), i%int64(g.Events)
	within := float64(event) / float64(g.Events) * float64(g.window)
	return streamStart + window*int64(g.window) + int64(within)
}

func (g *generated) fill(b *packetBatch) (more bool, err error) {
	pane := g.eventTime(g.done) / g.pane
	for g.done < g.total() && b.events < maxBatch {
		t := g.eventTime(g.done)
		if t/g.pane != pane {
			break
		}
		g.key = appendKey(g.key[:0], g.zipf.Draw())
		b.add(t, true, g.prefix, g.key)
		g.done++
	}
	return g.done < g.total(), nil
}

func (g *generated) progress() (done, total int64) { return g.done, g.total() }

// logged is a stream from an access log, on the log's clock, which never goes backward. A guard
// makes the keys, and a collector that is flushed after each request sends them.
type logged struct {
	collector.CountsOnly
	prefix string
	pane   int64
	log    *accesslog.Log
	next   func() (accesslog.Entry, error, bool)
	guard  *middleware.Guard
	counts *collector.Collector
	batch  *packetBatch // the batch to fill
	now    int64
	ahead  accesslog.Entry // the next entry, already read, of a later pane
	held   bool
	done   int64
}

func (l *logged) fill(b *packetBatch) (more bool, err error) {
	l.batch = b
	for b.events < maxBatch {
		entry, ok := l.ahead, l.held
		if !ok {
			if entry, err, ok = l.next(); err != nil {
				return false, err
			} else if !ok {
				return false, nil
			}
		}
		t := max(l.now, entry.Time.UnixNano())
		if b.events > 0 && t/l.pane != l.now/l.pane {
			l.ahead, l.held = entry, true
			return true, nil
		}
		l.held, l.now = false, t
		path, query, _ := strings.Cut(entry.Target, "?")
		l.guard.Check(middleware.Request{Method: entry.Method, Path: path, Query: query})
		l.counts.Flush(context.Background(), time.Unix(0, t))
		l.done++
	}
	return true, nil
}

// Send implements [collector.Sink].
func (l *logged) Send(_ context.Context, _ collector.Flush, counts []collector.Count) collector.Sent {
	for _, c := range counts {
		if base.IsTotal(c.Text) || base.IsAgain(c.Text) {
			continue // not a key
		}
		for range c.N {
			l.batch.add(l.now, false, l.prefix, c.Text)
		}
	}
	return collector.Sent{Lines: int64(len(counts))}
}

// Fit implements [collector.Sink].
func (*logged) Fit(text []byte) []byte { return wire.Plain.Fit(text) }

// Close implements [collector.Sink].
func (*logged) Close() error { return nil }

func (l *logged) progress() (done, total int64) {
	if l.log.IsStream() {
		return l.done, -1
	}
	return l.done, l.log.Stats().Good
}
