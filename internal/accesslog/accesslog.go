package accesslog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"
)

// Entry is one request of a log.
type Entry struct {
	Time   time.Time     // UTC, from 1970 until 2262
	Method string        // upper-case letters, "-" and "_"
	Target string        // path[?query] as sent, still escaped; or "*". No spaces, no control characters
	Addr   string        // the client as named in the log; empty if unknown
	Status int           // 0 if unknown
	Bytes  int64         // size of the response's body; -1 if unknown
	Took   time.Duration // time until the response was sent; 0 if unknown

	values string // see Value
}

// Log is one or more access logs that are read together, once. Stats may be called at any time
// from any goroutine.
type Log struct {
	sources  []source
	format   Format
	fields   *Fields
	values   []string
	reorder  time.Duration
	progress func(done, total int64)
	total    int64 // bytes of all sources; -1 if unknown
	done     int64 // bytes read
	tally    lineCounts
	started  atomic.Bool
}

// Open returns the log made of the named files, or of standard input if the only name is "-".
// Standard input is streamed and so cannot be sorted together with files. Open checks that the
// files can be opened, but reads nothing.
func Open(names []string, o Options) (*Log, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	if len(names) == 0 {
		return nil, errors.New("access log: none is named; give a file, or - for standard input")
	}
	l := &Log{format: o.Format, fields: o.Fields, values: o.Values, reorder: o.Reorder, progress: o.Progress}
	for _, name := range names {
		if name == "-" && len(names) > 1 {
			return nil, errors.New("access log: standard input (-) is streamed and cannot be sorted together with files; give - alone, or files only")
		}
		s, err := newSource(name, o.Stdin)
		if err != nil {
			return nil, fmt.Errorf("access log: %w", err)
		}
		l.sources = append(l.sources, s)
		if l.total < 0 || s.size < 0 {
			l.total = -1
		} else {
			l.total += s.size
		}
	}
	return l, nil
}

// IsStream reports whether the log is standard input, whose end is not known in advance.
func (l *Log) IsStream() bool { return l.sources[0].stdin != nil }

// Entries yields the requests, once. Those of files come in the order of time; equal times keep
// the order of the files, then of their lines. Those of standard input come in the same order,
// except requests that are later than [Options.Reorder] allows, which [Stats] counts. An error
// ends the sequence.
//
// A source without a good line is an error, which for a file comes before any entry. A source
// that breaks later (damaged gzip or zstd, a read error) first yields its good lines, with those
// of the other files. When ctx ends, lines that are held back are not passed on.
func (l *Log) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var err error
		switch {
		case l.started.Swap(true):
			err = errors.New("access log: its entries can be read once only")
		case l.IsStream():
			err = l.stream(ctx, yield)
		default:
			err = l.sort(ctx, yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Entry{}, err)
		}
	}
}

// errStopped means that the caller of Entries has stopped the iteration.
var errStopped = errors.New("stopped")

// Stats returns the counts of the lines read so far.
func (l *Log) Stats() Stats { return l.tally.stats() }

func (l *Log) sort(ctx context.Context, yield func(Entry, error) bool) error {
	all, err := l.load(ctx)
	if err != nil {
		return err
	}
	for e, err := range all.Entries(ctx) {
		if err != nil {
			return err
		}
		if !yield(e, nil) {
			return errStopped
		}
	}
	return all.broken
}

func (l *Log) stream(ctx context.Context, yield func(Entry, error) bool) error {
	order, stopped := newReorder(l.reorder), false
	give := func() error {
		for e, ok := order.next(); ok; e, ok = order.next() {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("access log: %w", err)
			}
			if !yield(*e, nil) {
				stopped = true
				return errStopped
			}
		}
		return nil
	}
	// While the source waits for a line, requests that become due are yielded.
	source := l.sources[0]
	source.idle = func(began time.Time) error {
		order.advance(began, time.Now())
		return give()
	}
	_, err := l.read(ctx, source, func(r *parsedLine) error {
		if late := order.add(r.entry()); late > 0 {
			l.tally.addLate(late, order.full)
		}
		return give()
	})
	if stopped {
		return errStopped
	}
	if ctx.Err() != nil {
		return err
	}
	order.finish()
	return errors.Join(give(), err)
}

// load reads all sources.
func (l *Log) load(ctx context.Context) (*Kept, error) {
	var all sorted
	var broken error
	for _, s := range l.sources {
		good, err := l.read(ctx, s, func(r *parsedLine) error {
			all.add(r)
			return nil
		})
		switch {
		case err == nil:
		case good == 0 || ctx.Err() != nil:
			return nil, err
		default:
			broken = errors.Join(broken, err)
		}
	}
	return &Kept{entries: all.entries(), stats: l.Stats(), broken: broken}, nil
}

// read calls each with every valid line of the source, and returns their number. The request is
// valid until each returns.
func (l *Log) read(ctx context.Context, s source, each func(*parsedLine) error) (good int64, err error) {
	in, err := s.open(ctx, l.advance)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", s.name, err)
	}
	defer in.Close()

	var (
		text    = newLines(in)
		decoder = LineDecoder{codec: decoder{format: l.format, fields: l.fields, wanted: l.values}}
		first   BadLine // reason if no line is good
		bad     int64
		r       parsedLine
	)
	for text.next() {
		if err := ctx.Err(); err != nil {
			return good, fmt.Errorf("read %s: %w", s.name, err)
		}
		ok, reason := decoder.decode(text.line, &r)
		if reason != nil {
			bad++
			if bad == 1 {
				first = newBadLine(s.name, text.number, reason, text.line)
			}
			l.tally.addBad(s.name, text.number, reason, text.line)
		}
		if !ok {
			continue
		}
		good++
		l.tally.addGood()
		if err := each(&r); err != nil {
			return good, err
		}
	}
	switch {
	case ctx.Err() != nil:
		return good, fmt.Errorf("read %s: %w", s.name, ctx.Err())
	case text.err != nil:
		return good, fmt.Errorf("read %s after line %d (%d good): %w", s.name, text.number, good, in.explain(text.err))
	case good > 0:
		return good, nil
	case bad == 0:
		return 0, fmt.Errorf("read %s: it is empty; %s", s.name, l.format.description().expected)
	}
	return 0, fmt.Errorf("read %s: none of its %d lines is good (line %d: %s: %s); %s",
		s.name, bad, first.Line, first.Reason, first.Excerpt, l.format.description().expected)
}

func (l *Log) advance(n int) {
	l.done += int64(n)
	if l.progress != nil {
		l.progress(l.done, l.total)
	}
}
