// Package replay sends an access log through the whole pipeline on the log's own clock. The guard
// that makes keys and counts, the collector, the bytes on the wire, the decoder, the windows and
// the detector, the hot set and the limits are those of production. Only sockets and Redis are
// left out. The clock is the log's, so a day passes in seconds and every run has the same result.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a replay. Rules and Log are required.
type Config struct {
	Rules *rules.Rules
	Log   Log
	// Speed is the speed of the replay as a multiple of the log's. Zero means as fast as
	// possible.
	Speed float64
	// Memory bounds the windows. Zero means 1 GiB, which is allocated only as needed.
	Memory int64
	// OnEvent, if not nil, is called with each event as it happens.
	OnEvent func(Event)
	// OnRelisted, if not nil, is called with each change of how a hot key is listed.
	OnRelisted func(Event)
	// OnKey, if not nil, is called at the end for each key that was ever hot, and for each rule
	// without hot that refused requests. The most limited ones come first.
	OnKey func(KeyReport)
	// Explain is the key to explain, under any rule if it names none. OnExplained, if not nil, is
	// called at the end, once for each rule that counted the key.
	Explain     rules.Key
	OnExplained func(Explanation)
	// OnProgress, if not nil, is called periodically with the number of replayed requests and the
	// total. For standard input, which is read during the replay, the two are equal.
	OnProgress func(done, total int64)
}

// Log is an access log: an [accesslog.Log], or an [accesslog.Kept].
type Log interface {
	Entries(context.Context) iter.Seq2[accesslog.Entry, error]
	IsStream() bool
	Stats() accesslog.Stats
}

// Summary is the result of a replay.
type Summary struct {
	Event    string `json:"event"`    // "summary"
	Requests int64  `json:"requests"` // replayed requests
	Skipped  int64  `json:"skipped"`  // bad lines
	Keys     int64  `json:"keys"`     // distinct keys that were counted
	Hot      int64  `json:"hot"`      // distinct keys that were ever hot
	Limited  int64  `json:"limited"`  // requests that would have been refused
	Late     int64  `json:"late"`     // counts that came too late for any window
	// OutOfOrder is the number of requests from standard input that came later than the reorder
	// buffer allows, and Behind the largest delay. The result may then differ from that for the
	// sorted log. BufferFull reports that the buffer was too small for the reorder time.
	OutOfOrder int64   `json:"out_of_order"`
	Behind     float64 `json:"out_of_order_seconds"`
	BufferFull bool    `json:"buffer_full"`
	// NoBytes is the number of requests without bytes in the log, if a rule counts bytes.
	NoBytes int64 `json:"no_bytes"`
	// NoTime reports that no request in the log has a duration, although a rule counts costs.
	NoTime bool `json:"-"`
	// NotTold lists the headers and cookies that rules name and no request in the log has, such
	// as "header:x-tenant", separated by commas.
	NotTold string  `json:"-"`
	Seconds float64 `json:"seconds"` // time from the first request to the last
}

// flushAfter is the number of requests of one instant that are counted before a flush, so that
// the collector's tables never fill up. In a log with whole seconds an instant may have more. It
// is then flushed in parts, and the counts in an event are those up to the part that caused it.
const flushAfter = 10_000

// progressEvery is the number of requests between two calls of OnProgress.
const progressEvery = 4096

// replay is one run.
type replay struct {
	Config
	counts   *collector.Collector
	guard    *middleware.Guard
	decoder  *decode.Decoder
	detector *aggregator.Detector
	intake   *intake

	now     time.Time // time of the newest request; late requests do not turn it back
	current time.Time // time of the current request
	first   time.Time
	pending []published.Change // changes of the hot set that are not in force yet

	keys      map[uint64]struct{}
	hot       map[rules.Key]struct{}
	listed    map[rules.Key]published.Hot // last published state
	decidedAt time.Time                   // time of the last decision
	reports   *reports                    // nil if not requested
	explainer *explainer                  // nil if not requested
	costs     bool                        // whether some rule counts bytes or milliseconds
	values    *LogValues
	took      time.Duration // total duration of all requests
	noBytes   int64
	limited   int64
	shadowed  int64 // the guard's count so far
	unflushed int
	done      int64 // number of requests
}

// Run replays the log. If ctx ends or the log cannot be read further, it returns the summary of
// the replayed part together with the error.
func Run(ctx context.Context, c Config) (Summary, error) {
	r := &replay{
		Config: c, keys: make(map[uint64]struct{}), hot: make(map[rules.Key]struct{}),
		listed: make(map[rules.Key]published.Hot),
	}
	if err := r.assemble(); err != nil {
		return Summary{}, err
	}
	err := r.requests(ctx)
	r.flush()
	r.finish()
	if dropped := r.counts.Stats().Dropped; err == nil && dropped.Sum() > 0 {
		err = fmt.Errorf("replay: %d counts were dropped (table full %d, too long %d): the result is not exact",
			dropped.Sum(), dropped.TableFull, dropped.TooLong)
	}
	if err == nil && r.explainer != nil {
		err = r.explainer.err()
	}
	return r.summary(), err
}

func (r *replay) assemble() error {
	if r.Rules == nil || r.Log == nil {
		return errors.New("replay: Config needs Rules and Log")
	}
	if !(r.Speed >= 0) { // nor NaN
		return fmt.Errorf("replay: Config.Speed is %v, must be 0 or more", r.Speed)
	}
	r.Memory = cmp.Or(r.Memory, 1<<30)
	r.costs = slices.ContainsFunc(r.Rules.Rules, func(rule rules.Rule) bool {
		return rule.Count == rules.Bytes || rule.Count == rules.Millis
	})
	r.values = NewLogValues(r.Rules)
	sink, err := statsdsink.New(statsdsink.Config{Rules: r.Rules, Sender: r, Instance: "replay"})
	if err != nil {
		return err
	}
	if r.counts, err = collector.New(collector.Config{Sink: sink, MaxKeys: 1 << 18, Budget: -1}); err != nil {
		return err
	}
	if r.guard, err = r.newGuard(); err != nil {
		return err
	}
	r.decoder = decode.NewDecoder(r.Rules, wire.Plain)
	detector := aggregator.DetectorConfig{Rules: r.Rules, Publisher: r, Memory: r.Memory, OnlySuspect: true, OnVerdict: r.decided, Days: baseline.NewDays("replay")}
	if r.OnKey != nil || r.OnExplained != nil {
		r.reports = newReports(r.Rules, r.guard)
	}
	if r.OnExplained != nil {
		r.explainer = newExplainer(r.Rules, r.Explain)
		detector.Explain, detector.OnAccount = r.Explain, r.explainer.addPane
	}
	r.detector = aggregator.NewDetector(detector)
	r.intake = &intake{r.detector, r}
	return nil
}

// newGuard returns the guard of a single instance that got all requests. No request waits, and
// limits that production decides in Redis for all instances are decided in memory. A log does not
// have the number of concurrent requests.
func (r *replay) newGuard() (*middleware.Guard, error) {
	clock := func() time.Duration { return time.Duration(r.now.UnixNano()) }
	opts, err := InMemory(clock)
	if err != nil {
		return nil, err
	}
	opts = append(opts, middleware.WithClock(clock))
	for i := range r.Rules.Rules {
		for _, p := range r.Rules.Rules[i].Named() {
			if p.Source == rules.Ctx { // a log does not have it
				opts = append(opts, middleware.WithParam(p.Name, func(context.Context) string { return "" }))
			}
		}
	}
	return middleware.New(r.Rules, r.counts, opts...)
}

// InMemory returns the options of a guard that makes no remote call, and in which no request waits. A
// nil clock is the system's.
func InMemory(clock func() time.Duration) ([]middleware.Option, error) {
	all, err := limiter.NewMemory(limiter.MemoryConfig{Clock: clock})
	if err != nil {
		return nil, err
	}
	return []middleware.Option{middleware.WithoutWaiting(), middleware.WithBackend(all), middleware.WithSemaphore(semaphore.New(semaphore.Config{}))}, nil
}

func (r *replay) requests(ctx context.Context) error {
	pace := pacer{speed: r.Speed}
	for entry, err := range r.Log.Entries(ctx) {
		if err != nil {
			return err
		}
		if r.first.IsZero() {
			r.first, r.now, r.current = entry.Time, entry.Time, entry.Time
			r.detector.Advance(r.now) // keys can cool from this pane on
			if err := pace.until(ctx, r.now); err != nil {
				return err
			}
		}
		if !entry.Time.Equal(r.current) {
			r.flush()
			if err := pace.until(ctx, entry.Time); err != nil {
				return err
			}
			r.moveTo(entry.Time)
		} else if r.unflushed >= flushAfter {
			r.flush()
		}
		d := r.request(&entry)
		if shadowed := r.guard.Stats().Shadowed; !d.Allowed || shadowed > r.shadowed {
			r.limited++ // a limit in shadow mode counts too: a replay evaluates it like any other
			r.shadowed = shadowed
		}
		if r.reports != nil {
			r.reports.decided(d)
		}
		r.unflushed++
		if r.done++; r.done%progressEvery == 0 && r.OnProgress != nil {
			total := r.done
			if !r.Log.IsStream() {
				total = r.Log.Stats().Good
			}
			r.OnProgress(r.done, total)
		}
	}
	return nil
}

// request sends one request through the guard. The request ends at once: a log has either its
// start or its end, not both.
func (r *replay) request(e *accesslog.Entry) rules.Decision {
	path, query, _ := strings.Cut(e.Target, "?")
	req := middleware.Request{Method: e.Method, Path: path, Query: query}
	r.values.Add(&req, e)
	if !r.costs {
		return r.guard.Check(req)
	}
	if e.Bytes < 0 {
		r.noBytes++
	}
	r.took += e.Took
	d, ticket := r.guard.Begin(req)
	ticket.End(middleware.Cost{Bytes: max(0, e.Bytes), Time: e.Took})
	return d
}

// flush sends the counts of the current instant. Each flush holds the counts of one instant of
// the log, so the time of an event is that of the request that caused it.
func (r *replay) flush() {
	if r.unflushed > 0 {
		r.counts.Flush(context.Background(), r.current)
		r.unflushed = 0
	}
}

// moveTo advances the clock to the next request. The hot set changes at multiples of 100 ms,
// where a flush would have changed it in production.
func (r *replay) moveTo(t time.Time) {
	r.current = t
	if t.Before(r.first) {
		r.first = t
	}
	if !t.After(r.now) {
		return
	}
	crossed := t.UnixNano()/int64(base.FlushInterval) != r.now.UnixNano()/int64(base.FlushInterval)
	r.now = t
	r.detector.Advance(t)
	if crossed {
		r.putInForce()
	}
}

// putInForce applies the pending changes of the hot set to the limits.
func (r *replay) putInForce() {
	for _, change := range r.pending {
		if r.reports != nil {
			r.reports.cooling(change)
		}
		r.guard.HotSet().Update("", change)
		if r.reports != nil {
			r.reports.heating(change)
		}
	}
	r.pending = r.pending[:0]
}

// finish closes the windows and keys that are still open at the end of the log.
func (r *replay) finish() {
	r.putInForce()
	if r.reports == nil {
		return
	}
	if r.explainer != nil {
		r.detector.Advance(r.now.Add(r.explainer.pane())) // completes the last pane
	}
	all := r.reports.closeAll(r.now)
	if r.OnKey != nil {
		for _, k := range all {
			r.OnKey(k)
		}
	}
	if r.explainer != nil {
		for _, x := range r.explainer.explanations(all) {
			r.OnExplained(x)
		}
	}
}

func (r *replay) summary() Summary {
	lines := r.Log.Stats()
	return Summary{
		Event:      "summary",
		Requests:   r.done,
		Skipped:    lines.Bad,
		Keys:       int64(len(r.keys)),
		Hot:        int64(len(r.hot)),
		Limited:    r.limited,
		Late:       r.detector.Stats().Late,
		OutOfOrder: lines.Disorder.Late,
		Behind:     lines.Disorder.By.Seconds(),
		BufferFull: lines.Disorder.Full,
		NoBytes:    r.noBytes,
		NoTime:     r.costs && r.took == 0,
		NotTold:    r.values.notTold(),
		Seconds:    r.now.Sub(r.first).Seconds(),
	}
}
