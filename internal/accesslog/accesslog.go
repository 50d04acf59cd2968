// Package accesslog reads the access logs of real servers, so that their
// requests can be replayed.
//
// It reads combined (Apache, nginx; common is its beginning), JSON lines as Caddy, Traefik,
// Envoy and nginx write them, and any other JSON or delimited lines whose fields are named by
// [Fields]. A file, or standard input, may be plain, gzip or zstd: its first bytes tell. Data
// flows one way:
//
//	source (bytes, plain) ─► lines ─► decoder (format, fields) ─► sorted (files) ──────────► Entry
//	                                                          └─► reorder (standard input) ─► Entry
//
// Files are read whole, then sorted by time all together; the entries are kept
// compact for that (32 bytes and their text). A single file is not streamed,
// even when it is in order: to know that it is, it would have to be read twice,
// and a named pipe cannot be. So every file is known to be readable before its
// first request is replayed. What is too large for memory goes through standard
// input, which is streamed: servers write a line when a request is done, and many
// stamp it with when it began, so a few seconds of it are held back and sorted.
package accesslog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync/atomic"
	"time"
)

// Entry is one request of a log.
type Entry struct {
	Time   time.Time     // UTC, from 1970 until 2262
	Method string        // upper-case letters, "-" and "_"
	Target string        // path[?query] as it travelled, still escaped; or "*". No spaces, no control characters
	Addr   string        // the client as the log names it; empty when unknown
	Status int           // 0 when unknown
	Bytes  int64         // of the response's body; -1 when unknown
	Took   time.Duration // until the response was sent; 0 when unknown

	values string // see Value
}

// Options are the settings of a [Log].
type Options struct {
	// Format of all files. Default: [Auto].
	Format Format

	// Fields names the fields of JSON or delimited lines. With Auto they are JSON.
	Fields *Fields

	// Values are the headers and cookies that are wanted of the lines that have them, as
	// "header:x-tenant", in lower case, and "cookie:id". See [Entry.Value].
	Values []string

	// Stdin is what the name "-" stands for. Default: os.Stdin. When the
	// context ends while a Read of it blocks, that Read is left to end by
	// itself, and what it yields is lost.
	Stdin io.Reader

	// Reorder is how much of the log's time is held back to sort standard input:
	// a request that is written up to so much after a later one is given before
	// it. Default: 10 s; negative: nothing, requests are given as they come. What
	// is held takes 256 MiB at most.
	Reorder time.Duration

	// KeepBad is how many bad lines [Stats] shows, over all files. Default: 5;
	// negative: none.
	KeepBad int

	// Progress, if set, is called while bytes are read, in the goroutine that
	// iterates: with the bytes read so far (compressed, where they are) and
	// their total, -1 when unknown.
	Progress func(done, total int64)
}

func (o *Options) validate() error {
	if o.Format == "" {
		o.Format = Auto
	}
	if _, err := ParseFormat(string(o.Format)); err != nil {
		return err
	}
	if err := o.validateFields(); err != nil {
		return err
	}
	if len(o.Values) > maxValues {
		return fmt.Errorf("%d headers and cookies are wanted; at most %d are read", len(o.Values), maxValues)
	}
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Reorder == 0 {
		o.Reorder = defaultReorder
	}
	if o.KeepBad == 0 {
		o.KeepBad = 5
	}
	return nil
}

func (o *Options) validateFields() error {
	delimited := splitters[o.Format] != nil
	switch {
	case o.Fields == nil && delimited:
		return fmt.Errorf("format %s: its columns have no names; say with --fields what they are", o.Format)
	case o.Fields == nil:
		return nil
	case o.Format == Auto:
		o.Format = JSON
	case o.Format != JSON && !delimited:
		return fmt.Errorf("format %s: its fields are known; give fields for json, csv, tsv or space", o.Format)
	}
	_, err := o.Fields.shape(delimited, o.Values)
	return err
}

// Log is one or more access logs, read together, once. Stats may be called at
// any time from any goroutine.
type Log struct {
	sources  []source
	format   Format
	fields   *Fields
	values   []string
	reorder  time.Duration
	progress func(done, total int64)
	total    int64 // bytes of all sources, -1: unknown
	done     int64 // bytes read
	tally    tally
	started  atomic.Bool
}

// Open names the logs to read: files, or "-" alone for standard input, which is
// streamed and so cannot be sorted together with files. It checks that the
// files can be opened, but reads nothing.
func Open(names []string, o Options) (*Log, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	if len(names) == 0 {
		return nil, errors.New("access log: none is named; give a file, or - for standard input")
	}
	l := &Log{format: o.Format, fields: o.Fields, values: o.Values, reorder: o.Reorder, progress: o.Progress, tally: tally{keep: o.KeepBad}}
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

// IsStream reports whether the log is standard input, of which the end is not known
// before it comes.
func (l *Log) IsStream() bool { return l.sources[0].stdin != nil }

// Entries yields the requests, once: of files in the order of time (equal times
// in the order of the files, then of their lines), of standard input in the same
// order but for those that come later than [Options.Reorder] allows, which
// [Stats] counts. An error ends it.
//
// A source that has no good line is an error, and if it is a file, it comes
// before any entry. A source that breaks later (damaged gzip or zstd, a read
// error) first yields its good lines, with those of the other files. When ctx ends,
// lines that are held back are not passed on.
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

// errStopped says that the caller of Entries wants no more.
var errStopped = errors.New("stopped")

// Stats counts the lines read so far.
func (l *Log) Stats() Stats { return l.tally.stats() }

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
	// While a line is waited for, what has become due meanwhile is given.
	source := l.sources[0]
	source.idle = func(began time.Time) error {
		order.pass(began, time.Now())
		return give()
	}
	_, err := l.read(ctx, source, func(r *request) error {
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

func (l *Log) sort(ctx context.Context, yield func(Entry, error) bool) error {
	all, broken, err := l.load(ctx)
	if err != nil {
		return err
	}
	for e := range all.entries() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("access log: %w", err)
		}
		if !yield(e, nil) {
			return errStopped
		}
	}
	return broken
}

// load reads all sources. broken is the errors of those that broke after good lines.
func (l *Log) load(ctx context.Context) (all *sorted, broken, err error) {
	all = &sorted{}
	for _, s := range l.sources {
		good, err := l.read(ctx, s, func(r *request) error {
			all.add(r)
			return nil
		})
		switch {
		case err == nil:
		case good == 0 || ctx.Err() != nil:
			return nil, nil, err
		default:
			broken = errors.Join(broken, err)
		}
	}
	return all, broken, nil
}

// read calls each with every valid line of the source, and returns how many there
// were. The request is valid until each returns.
func (l *Log) read(ctx context.Context, s source, each func(*request) error) (good int64, err error) {
	in, err := s.open(ctx, l.advance)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", s.name, err)
	}
	defer in.Close()

	var (
		text  = newLines(in)
		codec = decoder{format: l.format, fields: l.fields, wanted: l.values}
		first BadLine // why nothing is good, if nothing is
		bad   int64
		r     request
	)
	for text.next() {
		if err := ctx.Err(); err != nil {
			return good, fmt.Errorf("read %s: %w", s.name, err)
		}
		reason := text.reason
		if reason == nil {
			reason = codec.decode(text.line, &r)
		}
		if errors.Is(reason, errNotRequest) {
			continue
		}
		if reason != nil {
			bad++
			if bad == 1 {
				first = newBadLine(s.name, text.number, reason, text.line)
			}
			l.tally.addBad(s.name, text.number, reason, text.line)
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
		return 0, fmt.Errorf("read %s: it is empty; %s", s.name, l.format.expected())
	}
	return 0, fmt.Errorf("read %s: none of its %d lines is good (line %d: %s: %s); %s",
		s.name, bad, first.Line, first.Reason, first.Excerpt, l.format.expected())
}

func (l *Log) advance(n int) {
	l.done += int64(n)
	if l.progress != nil {
		l.progress(l.done, l.total)
	}
}
