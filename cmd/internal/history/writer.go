package history

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Writer]. Store, Owner and InOffice are required.
type Config struct {
	Store *Store
	// Owner names the part of the keys that this process counts, as in the published set.
	Owner string
	// InOffice reports whether this process publishes that part. A standby counts the same keys, and
	// writes nothing.
	InOffice func() bool
	// Keep is how long amounts are kept, and Memory the bytes of all owners' chunks.
	Keep   time.Duration
	Memory int64
	// Hides reports whether a key must not be stored. Nil hides none.
	Hides func(text string) bool
	// Log receives a line when writing stops, and a line when it resumes. A nil Log disables it.
	Log *slog.Logger
}

// Stats are the state of a writer, and its counters.
type Stats struct {
	Writing bool   // whether this process writes the owner's history
	Paused  string // why nothing is written although Redis answers, or empty
	Failing string // the error of the current failure, or empty

	Panes, Chunks, Failures int64 // seconds and chunks that were written, and calls that failed
	Bytes                   int64 // size of the owner's chunks
	Dropped                 DroppedPanes
	Hidden                  int64 // amounts of keys that must not be stored
}

// DroppedPanes are seconds that were not written, by reason.
type DroppedPanes struct {
	Late       int64 // counted after the chunk of their minute was written
	Paused     int64 // the server's memory is nearly full
	Redis      int64 // Redis could not be reached for too long
	Unreadable int64 // found in Redis and not readable
	Marks      int64 // marks beyond maxWaiting
}

// Writer writes the history of one owner. [Writer.Add] and [Writer.Mark] do not block; [Writer.Run]
// makes all calls to Redis.
type Writer struct {
	cfg Config

	mu     sync.Mutex // guards the fields below
	panes  map[int64]*pane
	marks  []waiting
	newest int64 // newest second that was added
	before int64 // seconds before it are in chunks, and not added any more
	stale  bool  // seconds that are in Redis are to be read again
	forget forgetting

	office // used by Run's goroutine only

	stats base.Guarded[Stats]
}

// pane holds the amounts of a second that is not in a chunk yet.
type pane struct {
	*chunk
	unsaved bool
	refused bool // whether only refused amounts are unsaved
}

// waiting is a mark of a second that is not counted yet.
type waiting struct {
	Mark
	since time.Time
}

const (
	// maxPanes bounds the seconds that wait to be written.
	maxPanes = 180
	// maxWaiting bounds the marks that wait, and maxWait how long.
	maxWaiting = 1000
	maxWait    = time.Minute
	// settle is how long after the end of a minute its seconds may still be added. Instances with many
	// hot keys report each of them in half a minute.
	settle = 35
	// settledAfter is how long a change of refused amounts is written at once. Later ones are written
	// every refusedEvery seconds, as reports of many keys may change each second of half a minute.
	settledAfter, refusedEvery = 5, 10
	// ahead is how far in the future a second may be.
	ahead = 60
)

// NewWriter returns a writer, which does nothing until [Writer.Run].
func NewWriter(c Config) *Writer {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Hides == nil {
		c.Hides = func(string) bool { return false }
	}
	return &Writer{cfg: c, panes: make(map[int64]*pane)}
}

// Add adds what a detector of the owner counted.
func (w *Writer) Add(all []aggregator.Tops) {
	now := time.Now().Unix()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range all {
		t := &all[i]
		p := w.paneAt(t.Second, now)
		if p == nil {
			continue
		}
		if hidden := p.addTops(t, w.hides); hidden > 0 {
			w.stats.Change(func(s *Stats) { s.Hidden += int64(hidden) })
		}
	}
}

// hides reports whether a key must not be stored. The caller holds the lock.
func (w *Writer) hides(text string) bool { return w.forget.names("", text) || w.cfg.Hides(text) }

// Mark adds a mark.
func (w *Writer) Mark(m Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case m.Text != "" && w.hides(m.Text):
	case len(w.marks) >= maxWaiting:
		w.stats.Change(func(s *Stats) { s.Dropped.Marks++ })
	default:
		w.marks = append(w.marks, waiting{m, time.Now()})
	}
}

// placeMarks puts marks into the panes of their seconds, once these are counted. The caller holds the
// lock.
func (w *Writer) placeMarks() {
	if w.newest == 0 {
		return
	}
	later := w.marks[:0]
	for _, x := range w.marks {
		m := x.Mark
		if m.At > w.newest && time.Since(x.since) < maxWait {
			later = append(later, x)
			continue
		}
		m.At = min(max(m.At, w.before, w.newest-maxPanes+1), w.newest) // or the nearest that can be written
		p := w.panes[m.At]
		if p == nil {
			p = &pane{chunk: newChunk(m.At, 1, 1)}
			w.panes[m.At] = p
		}
		p.mark(m)
		p.unsaved = true
	}
	w.marks = later
}

// paneAt returns the pane of a second, or nil if it is not kept any more. The caller holds the lock.
func (w *Writer) paneAt(second, now int64) *pane {
	if second < w.before || second <= w.newest-maxPanes || second > now+ahead {
		w.stats.Change(func(s *Stats) { s.Dropped.Late++ })
		return nil
	}
	p := w.panes[second]
	if p == nil {
		p = &pane{chunk: newChunk(second, 1, 1)}
		w.panes[second] = p
		w.newest = max(w.newest, second)
		w.trim()
	}
	p.unsaved = true
	return p
}

// trim drops the oldest panes beyond maxPanes. The caller holds the lock.
func (w *Writer) trim() {
	for second, p := range w.panes {
		if second > w.newest-maxPanes {
			continue
		}
		delete(w.panes, second)
		if s := w.stats.Load(); p.unsaved && s.Writing {
			w.stats.Change(func(s *Stats) {
				if s.Paused != "" {
					s.Dropped.Paused++
				} else {
					s.Dropped.Redis++
				}
			})
		}
		w.stale = true
	}
}

// Stats returns the state and the counters.
func (w *Writer) Stats() Stats { return w.stats.Load() }

// writeEvery is the interval between writes, and callTimeout bounds each call to Redis.
const (
	writeEvery  = time.Second
	callTimeout = 2 * time.Second
)

// Run writes until ctx ends, and then writes the rest.
func (w *Writer) Run(ctx context.Context) error {
	for range base.Ticks(ctx, writeEvery) {
		w.step(ctx)
	}
	if w.epoch != 0 && w.cfg.InOffice() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		w.mu.Lock()
		for _, p := range w.panes {
			p.unsaved = p.unsaved || p.refused
		}
		w.mu.Unlock()
		w.step(last)
	}
	return nil
}

// step writes the added amounts, if this process is in office and Redis can be reached and has room.
func (w *Writer) step(ctx context.Context) {
	if !w.cfg.InOffice() {
		w.leave()
		return
	}
	w.stats.Change(func(s *Stats) { s.Writing = true })
	if time.Now().Before(w.retry) {
		return
	}
	err := w.write(ctx)
	switch {
	case err == nil:
		w.failures = 0
		if s := w.stats.Load(); s.Failing != "" {
			w.cfg.Log.Info("history is written again", "owner", w.cfg.Owner)
			w.stats.Change(func(s *Stats) { s.Failing = "" })
		}
	case ctx.Err() != nil:
	default:
		w.failures++
		w.retry = time.Now().Add(min(writeEvery<<min(w.failures, 5), 15*time.Second))
		if s := w.stats.Load(); s.Failing == "" {
			w.cfg.Log.Warn("history cannot be written, trying again; hot keys do not need it", "owner", w.cfg.Owner, "err", err)
		}
		w.stats.Change(func(s *Stats) { s.Failing = err.Error(); s.Failures++ })
	}
}

// leave records that another process is in office.
func (w *Writer) leave() {
	w.office = office{}
	w.stats.Change(func(s *Stats) { s.Writing, s.Paused, s.Failing, s.Bytes = false, "", "", 0 })
}

// Refused adds what limits refused of a hot key's requests from one second to another. Instances
// report sums, so how these divide among the seconds is not known: each gets a part by what the key
// counts in it, and no more than that. The part of seconds that are in chunks is lost.
func (w *Writer) Refused(key rules.Key, n, from, to int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := max(from, w.before, w.newest-maxPanes)
	if begin >= to {
		return
	}
	n = n * (to - begin) / (to - from)
	var cells []*Cell
	all := int64(0)
	for second := begin; second < to; second++ {
		p := w.panes[second]
		if p == nil {
			continue
		}
		if cell := p.cellOf(key); cell != nil {
			cells = append(cells, cell)
			all += cell.Low
			p.unsaved = p.unsaved || second > w.newest-settledAfter
			p.refused = true
		}
	}
	for _, cell := range cells {
		part := n
		if all > 0 {
			part = int64(float64(n) * float64(cell.Low) / float64(all))
		}
		n, all = n-part, all-cell.Low
		if cell.Refused = max(0, cell.Refused) + part; cell.High != published.Unknown {
			cell.Refused = min(cell.Refused, cell.High)
		}
	}
}
