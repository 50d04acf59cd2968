package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
)

// source is one log to be read.
type source struct {
	name  string                      // name for messages
	stdin io.Reader                   // nil for the file called name
	idle  func(began time.Time) error // called from time to time while a Read waits, if not nil
	size  int64                       // stored size in bytes; -1 if unknown
}

func newSource(name string, stdin io.Reader) (source, error) {
	if name == "-" {
		s := source{name: "standard input", stdin: stdin, size: -1}
		if f, ok := stdin.(fs.File); ok { // "replay - < access.log" has a size
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				s.size = info.Size()
			}
		}
		return s, nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return source{}, err
	case info.IsDir():
		return source{}, fmt.Errorf("%s is a directory; name the files in it", name)
	case !info.Mode().IsRegular():
		return source{name: name, size: -1}, nil // opening a pipe twice would end its writer
	}
	f, err := os.Open(name)
	if err != nil {
		return source{}, err
	}
	return source{name: name, size: info.Size()}, f.Close()
}

// input is the decompressed text of an open source.
type input struct {
	io.Reader
	packed string // gzip, zstd, or empty
	close  []func()
}

func (in *input) Close() {
	for _, f := range in.close {
		f()
	}
}

// explain adds the likely cause of a read error.
func (in *input) explain(err error) error {
	switch {
	case in.packed == "":
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the %s data is cut off: %w", in.packed, err)
	}
	return fmt.Errorf("the %s data cannot be unpacked: %w", in.packed, err)
}

// open opens the source and detects by its first bytes whether it is compressed. Several gzip
// members or zstd frames in a row are read as one.
func (s source) open(ctx context.Context, advance func(int)) (*input, error) {
	in := &input{}
	reader := s.stdin
	if reader == nil {
		f, err := os.Open(s.name)
		if err != nil {
			return nil, err
		}
		in.close = append(in.close, func() { f.Close() }) // only read, so nothing can be lost
		reader = f
	}
	stored := bufio.NewReader(NewReads(ctx, reader, advance, s.idle))
	magic, err := stored.Peek(4)
	if err != nil && err != io.EOF {
		in.Close()
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		in.packed = "gzip"
		unpacked, err := gzip.NewReader(stored)
		if err != nil {
			in.Close()
			return nil, in.explain(err)
		}
		in.Reader = unpacked
	case isZstd(magic):
		in.packed = "zstd"
		unpacked, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1)) // no goroutines
		if err != nil {
			in.Close()
			return nil, in.explain(err)
		}
		in.close = append(in.close, unpacked.Close)
		in.Reader = unpacked
	default:
		in.Reader = stored
	}
	return in, nil
}

// isZstd reports whether magic begins a zstd frame, or the skippable frame that pzstd writes
// first (RFC 8878, 3.1).
func isZstd(magic []byte) bool {
	if len(magic) < 4 {
		return false
	}
	return string(magic) == "\x28\xb5\x2f\xfd" || magic[0]>>4 == 5 && string(magic[1:]) == "\x2a\x4d\x18"
}

// reads is the reader of [NewReads].
type reads struct {
	ctx     context.Context
	in      io.Reader
	advance func(int)
	idle    func(began time.Time) error
	buf     []byte
	unread  []byte // part of buf that was not returned yet
	err     error  // error after unread
	done    chan readResult
}

type readResult struct {
	n   int
	err error
}

// NewReads returns a reader of in whose Read ends with ctx. A Read of a pipe or a terminal
// cannot be interrupted, so each Read of in runs in a goroutine of its own, which is left behind
// if ctx ends first. While ctx lasts, no goroutine outlives the Read that started it. advance is
// called with the number of bytes of each Read of in. idle is called every 100 ms while a Read
// waits, with the time at which the wait began; an error of idle ends the Read. Either may be
// nil.
func NewReads(ctx context.Context, in io.Reader, advance func(n int), idle func(began time.Time) error) io.Reader {
	if advance == nil {
		advance = func(int) {}
	}
	return &reads{
		ctx: ctx, in: in, advance: advance, idle: idle,
		buf:  make([]byte, 256<<10),
		done: make(chan readResult, 1), // lets a Read that was left behind end
	}
}

// idleEvery is the interval at which idle is called.
const idleEvery = 100 * time.Millisecond

// wait waits for the Read of in, and returns the error that comes after unread.
func (r *reads) wait() error {
	var tick <-chan time.Time
	began := time.Now()
	if r.idle != nil {
		ticker := time.NewTicker(idleEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-r.ctx.Done():
			return r.ctx.Err()
		case got := <-r.done:
			r.unread = r.buf[:got.n]
			r.advance(got.n)
			return got.err
		case <-tick:
			if err := r.idle(began); err != nil {
				return err
			}
		}
	}
}

func (r *reads) Read(p []byte) (int, error) {
	if len(r.unread) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.err = r.ctx.Err(); r.err != nil {
			return 0, r.err
		}
		go func() {
			n, err := r.in.Read(r.buf)
			r.done <- readResult{n, err}
		}()
		if r.err = r.wait(); r.err != nil && len(r.unread) == 0 {
			return 0, r.err
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}
