package follow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
)

// file is one open file of a log.
type file struct {
	os      *os.File
	info    fs.FileInfo // identifies the file
	offset  int64       // end of the bytes that were read
	size    int64       // size at the last read
	partial []byte      // beginning of an incomplete line
	long    bool        // the rest of a line that is too long is to be skipped
	decoder *accesslog.LineDecoder
	options accesslog.Options // options of the decoder
	grew    time.Time         // time of its last growth
}

// openFile opens the file at path, at its beginning.
func openFile(path string, now time.Time, options accesslog.Options) (*file, error) {
	// Opening a pipe would block until a process writes to it.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; a stream is read as - from standard input", path)
	}
	decoder, err := accesslog.NewLineDecoder(options)
	if err != nil {
		return nil, err
	}
	o, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := o.Stat()
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return &file{os: o, info: info, decoder: decoder, options: options, grew: now}, nil
}

// skipToEnd seeks to the end of the file. If the decoder needs a heading, it reads that first.
// If the last line is incomplete, its rest will be skipped.
func (f *file) skipToEnd() error {
	if f.decoder.NeedsHeading() {
		if err := f.readHeading(); err != nil {
			return err
		}
	}
	end, err := f.os.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	f.offset = end
	last := make([]byte, 1)
	if end > 0 {
		if _, err := f.os.ReadAt(last, end-1); err != nil {
			return err
		}
		f.long = last[0] != '\n' // the rest of a line is not a line
	}
	return nil
}

// readHeading passes the first lines to the decoder, until one names the columns.
func (f *file) readHeading() error {
	const limit = 64 << 10
	head := make([]byte, limit)
	n, err := f.os.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for line := range bytes.Lines(head[:n]) {
		if _, _, err := f.decoder.Decode(line); err != nil || !f.decoder.NeedsHeading() {
			return err
		}
	}
	return nil
}

// read reads up to len(room) more bytes of the file and calls line with each complete line. more
// reports whether there may be more bytes. truncated reports whether the file was truncated;
// then it is read from its beginning.
func (f *file) read(room []byte, now time.Time, line func([]byte)) (more, truncated bool, err error) {
	info, err := f.os.Stat()
	if err != nil {
		return false, false, err
	}
	if f.size = info.Size(); f.size < f.offset {
		truncated = true
		f.offset, f.partial, f.long = 0, f.partial[:0], false
		f.decoder, _ = accesslog.NewLineDecoder(f.options) // openFile has checked the options
	}
	n, err := f.os.ReadAt(room, f.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, truncated, err
	}
	if n > 0 {
		f.offset += int64(n)
		f.grew = now
		f.cut(room[:n], line)
	}
	return n == len(room), truncated, nil
}

// cut calls line with each complete line in data and keeps the rest.
func (f *file) cut(data []byte, line func([]byte)) {
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break
		}
		switch {
		case f.long:
			f.long = false
		case len(f.partial) > 0:
			f.partial = append(f.partial, data[:end]...)
			line(f.partial)
			f.partial = f.partial[:0]
		default:
			line(data[:end])
		}
		data = data[end+1:]
	}
	if f.long {
		return
	}
	if f.partial = append(f.partial, data...); len(f.partial) > accesslog.MaxLine {
		line(f.partial) // too long, so each reports it as bad
		f.partial, f.long = nil, true
	}
}

// close closes the file. An incomplete last line counts as a line.
func (f *file) close(line func([]byte)) {
	if len(f.partial) > 0 {
		line(f.partial)
	}
	_ = f.os.Close() // only read, so nothing can be lost
}
